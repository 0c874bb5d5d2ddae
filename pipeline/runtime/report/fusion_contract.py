"""Contracts about fusion, for users' tests: these ops are one kernel, or are not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pipeline.errors import FusionError
from pipeline.remarks import Remark
from pipeline.runtime.interface.code import Kernel


def check_fused(kernels: Sequence[Kernel], remarks: Iterable[Remark], names: Sequence[str]) -> None:
    """Raises `FusionError` unless one kernel holds all of `names`; it says which kernels do hold them, and why."""
    holders = {name: [kernel for kernel in kernels if name in held(kernel)] for name in names}
    if any(all(name in place for name in names) for kernel in kernels for place in _places(kernel)):
        return
    lines = [f"{_join(names)} are not in one kernel:"]
    for name, holding in holders.items():
        where = ", ".join(kernel.name for kernel in holding) or f"no kernel; they hold {_join(_all(kernels))}"
        lines.append(f"  {name} is in {where}")
    lines += explanation_of_edges(_about(remarks, names))
    raise FusionError("\n".join(lines))


def check_not_fused(kernels: Sequence[Kernel], names: Sequence[str]) -> None:
    """Raises `FusionError` if one kernel holds all of `names`."""
    for kernel in kernels:
        if any(all(name in place for name in names) for place in _places(kernel)):
            raise FusionError(f"{_join(names)} are in one kernel, {kernel.name}")


def held(kernel: Kernel) -> set[str]:
    """What a kernel computes: the words for it, and PyTorch's ops in all its places."""
    return set().union(*_places(kernel))


def edges_not_fused(remarks: Iterable[Remark]) -> list[Remark]:
    """What was said of the edges between two kernels: the last pass that forms groups has the last word."""
    missed = [remark for remark in remarks if remark.edge is not None and remark.kind == "missed"]
    last = [remark for remark in missed if remark.pass_name == "form-groups"]
    return list(dict.fromkeys(last or missed))


def explanation_of_edges(remarks: Iterable[Remark]) -> list[str]:
    """Remarks on edges as lines for people: each kind of reason once with what would change it, below it the edges."""
    by_key: dict[str, dict[str, list[Remark]]] = {}
    for remark in remarks:
        change = f"; to change it: {remark.change}" if remark.change else ""
        by_key.setdefault(f"  {remark.key or remark.kind}{change}", {}).setdefault(remark.reason, []).append(remark)
    lines = []
    for head, by_reason in by_key.items():
        lines.append(head)
        for reason, together in by_reason.items():
            lines += [f"      {reason}", *_edges(together)]
    return lines


def _edges(remarks: Iterable[Remark]) -> list[str]:
    """The two ops of each edge; one line for those that differ by the module that repeats them alone."""
    alike: dict[tuple[tuple[str, str | None], ...], list[str]] = {}
    for remark in remarks:
        assert remark.edge is not None
        lines = tuple((subject.label, subject.source) for subject in remark.edge)
        alike.setdefault(lines, []).append(f"          {remark.edge[0]} -> {remark.edge[1]}")
    return [f"{edges[0]}{_more(len(edges) - 1)}" for edges in alike.values()]


def _more(count: int) -> str:
    """How many places there are beside one that is shown."""
    return f", and in {count} more place{'s' * (count > 1)}" if count else ""


def _places(kernel: Kernel) -> list[set[str]]:
    """What it computes in each of its places."""
    called = [{origin.op for origin in place.ops if origin.op is not None} for place in kernel.places]
    return [{*kernel.words, *names} for names in called] or [set(kernel.words)]


def _about(remarks: Iterable[Remark], names: Sequence[str]) -> list[Remark]:
    """What was said of edges between two of `names`; if nothing was, of edges at one of them."""
    between, at = [], []
    for remark in edges_not_fused(remarks):
        assert remark.edge is not None
        first, second = ({name for name in names if name in subject.names} for subject in remark.edge)
        if first and second and len(first | second) > 1:
            between.append(remark)
        elif first or second:
            at.append(remark)
    return between or at


def _all(kernels: Sequence[Kernel]) -> list[str]:
    return sorted(set().union(*map(held, kernels)))


def _join(names: Sequence[str]) -> str:
    return ", ".join(names)
