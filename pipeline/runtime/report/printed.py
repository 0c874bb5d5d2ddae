"""How an executable prints: what it takes and returns, its kernels, memory, target, options; as text, and as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from pipeline.errors import PipelineError
from pipeline.runtime.interface.code import Kernel, readable
from pipeline.runtime.interface.pytree import leaf_paths
from pipeline.runtime.interface.signature import Result, Signature

if TYPE_CHECKING:
    from pipeline.runtime.executable import Executable

#: So many kernels of an entry are shown as text; in HTML all are.
_SHOWN = 30

_HEADS = ("kernel", "kind", "calls", "FLOP", "bytes")
_ALIGNED = ("left", "left", "right", "right", "right", "left")


def as_text(executable: Executable) -> str:
    """Some lines, and one for each kernel of @main."""
    facts = _facts(executable)
    width = max(len(name) for name, _ in facts) + 1
    lines = [f"executable of {executable.name}"]
    for name, values in facts:
        heads = [f"{name}:", *[""] * (len(values) - 1)]
        lines += [f"  {head:{width}} {value}" for head, value in zip(heads, values, strict=True)]
    rows = _rows(executable.kernels)
    if not rows:
        return "\n".join(lines)
    shown = [list(_HEADS), *rows[:_SHOWN]]
    widths = [max(len(row[column]) for row in shown) for column in range(len(_HEADS))]
    lines += [f"    {'  '.join(_aligned(row, widths))}".rstrip() for row in shown]
    if len(rows) > _SHOWN:
        lines.append(f"    and {len(rows) - _SHOWN} more, see `kernels`")
    return "\n".join(lines)


def as_html(executable: Executable) -> str:
    """The same as tables of HTML, which notebooks show, with all kernels and where they come from."""
    facts = "".join(
        f"<tr><th style='text-align:left;vertical-align:top'>{escape(name)}</th>"
        f"<td style='text-align:left'>{'<br>'.join(map(escape, values))}</td></tr>"
        for name, values in _facts(executable)
    )
    rows = [[*row, _place(kernel)] for row, kernel in zip(_rows(executable.kernels), _mains(executable), strict=True)]
    heads = "".join(f"<th>{escape(head)}</th>" for head in (*_HEADS, "first place"))
    kernels = "".join(f"<tr>{''.join(map(_cell, row, _ALIGNED))}</tr>" for row in rows)
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{kernels}</tbody></table>" if rows else ""
    return f"<p>executable of <b>{escape(executable.name)}</b></p><table>{facts}</table>{table}"


def _facts(executable: Executable) -> list[tuple[str, Sequence[str]]]:
    """What there is to say, by name; several lines each."""
    threads = executable.num_threads
    fallbacks = executable.fallbacks
    options = ", ".join(f"{name}={value!r}" for name, value in executable.options.items())
    return [
        ("inputs", _inputs(executable.signature)),
        ("outputs", _outputs(executable.signature)),
        ("target", [f"{executable.target}, threads: {'as many as OpenMP says' if threads is None else threads}"]),
        ("options", [options or "the usual ones"]),
        ("memory", [_memory(executable)]),
        ("run by torch", [str(len(fallbacks) or "nothing"), *map(str, fallbacks)]),
        ("kernels", [_count(executable.kernels)]),
    ]


def _inputs(signature: Signature) -> list[str]:
    return [
        f"{argument.name}: {argument.type or argument.value}{', written to' if argument.mutated else ''}"
        for argument in signature.arguments
    ] or ["none"]


def _outputs(signature: Signature) -> list[str]:
    names = leaf_paths(signature.result_tree, "result")
    return [f"{name}: {_kind(result, signature)}" for name, result in zip(names, signature.results, strict=True)] or [
        "none"
    ]


def _kind(result: Result, signature: Signature) -> str:
    if result.kind == "argument":
        return f"the argument {signature.arguments[result.index].name}"
    if result.kind == "constant":
        return repr(result.value)
    return str(result.type) if result.type is not None else "a number"


def _memory(executable: Executable) -> str:
    try:
        memory = executable.memory
    except PipelineError:
        return "not reported for this target"
    parts = {name: getattr(memory, name) for name in ("weights", "prepared", "workspace", "results", "code")}
    more = "" if memory.complete else ", and more as it runs"
    return ", ".join(f"{name} {readable(size)}B" for name, size in parts.items()) + more


def _count(kernels: Iterable[Kernel]) -> str:
    """How many kernels there are, of each entry."""
    main = [kernel for kernel in kernels if kernel.entry == "main"]
    prepare = [kernel for kernel in kernels if kernel.entry != "main"]
    once = f"; {len(prepare)} of @prepare, which run once for the weights" if prepare else ""
    return f"{len(main)} of @main, called in {sum(kernel.calls for kernel in main)} places{once}"


def _mains(executable: Executable) -> list[Kernel]:
    return [kernel for kernel in executable.kernels if kernel.entry == "main"]


def _rows(kernels: Iterable[Kernel]) -> list[list[str]]:
    """The cells of each kernel of @main."""
    return [
        [kernel.name, kernel.kind, str(kernel.calls), _amount(kernel.operations), _amount(kernel.bytes)]
        for kernel in kernels
        if kernel.entry == "main"
    ]


def _amount(number: int | None) -> str:
    return "-" if number is None else readable(number).strip()


def _place(kernel: Kernel) -> str:
    """Where the last op of a kernel's first place comes from; not known of what was loaded."""
    return kernel.places[0].ops[-1].place if kernel.places and kernel.places[0].ops else ""


def _cell(text: str, side: str) -> str:
    return f"<td style='text-align:{side};white-space:nowrap'>{escape(text)}</td>"


def _aligned(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    cells = zip(row, widths, strict=True)
    return [cell.ljust(width) if number < 2 else cell.rjust(width) for number, (cell, width) in enumerate(cells)]
