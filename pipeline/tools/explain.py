"""What was fused and what was not, for people: each kernel with its source lines, each edge with its reason."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.remarks import Remark
from pipeline.runtime.interface.code import CallSite, Kernel
from pipeline.runtime.report.fusion_contract import edges_not_fused, explanation_of_edges


def explanation(kernels: Sequence[Kernel], remarks: Sequence[Remark]) -> str:
    """The kernels in the order of first use, then the edges between them."""
    lines = [f"{len(kernels)} kernel{'s' * (len(kernels) != 1)}:"]
    for kernel in kernels:
        times = f", called in {kernel.calls} places" if kernel.calls > 1 else ""
        once = ", once for the weights" if kernel.entry == "prepare" else ""
        lines.append(f"  {kernel.name} ({kernel.kind}{times}{once})")
        lines += [f"      {line}" for line in _places(kernel.places)]
    edges = edges_not_fused(remarks)
    lines += [
        "",
        f"{len(edges)} edge{'s' * (len(edges) != 1)} between two kernels:" if edges else "nothing left to fuse",
        *explanation_of_edges(edges),
    ]
    return "\n".join([*lines, ""])


def _places(places: Sequence[CallSite]) -> list[str]:
    """The lines of each place; of those that differ by the module that repeats them alone, of the first."""
    alike: dict[tuple[tuple[str | None, str | None], ...], dict[CallSite, None]] = {}
    for place in places:
        alike.setdefault(tuple((origin.op, origin.source) for origin in place.ops), {})[place] = None
    lines = []
    for together in alike.values():
        lines += _by_line(next(iter(together)))
        more = len(together) - 1
        lines += [f"and in {more} more place{'s' * (more > 1)}"] * bool(more)
    return lines


def _by_line(place: CallSite) -> list[str]:
    """A line of the model's source, and the module, with the ops there, for each of them."""
    found: dict[str, list[str]] = {}
    for origin in place.ops:
        found.setdefault(origin.place, []).append(origin.op or "unknown op")
    return [f"{source}: {', '.join(dict.fromkeys(names))}" for source, names in found.items()]
