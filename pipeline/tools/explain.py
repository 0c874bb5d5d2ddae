"""What was fused and what was not, for people: each kernel with its source lines, each edge with its reason."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.remarks import Remark
from pipeline.runtime.interface.code import CallSite, Kernel
from pipeline.runtime.report.fusion_contract import edges_not_fused
from pipeline.runtime.report.fusion_contract import explanation as lines_of


def explanation(kernels: Sequence[Kernel], remarks: Sequence[Remark]) -> str:
    """The kernels in the order of first use, then the edges between them."""
    lines = [f"{len(kernels)} kernel{'s' * (len(kernels) != 1)}:"]
    for kernel in kernels:
        times = f", called in {kernel.calls} places" if kernel.calls > 1 else ""
        lines.append(f"  {kernel.name} ({kernel.kind}{times})")
        for place in dict.fromkeys(kernel.places):
            lines += [f"      {line}" for line in _by_line(place)]
    edges = edges_not_fused(remarks)
    lines += [
        "",
        f"{len(edges)} edge{'s' * (len(edges) != 1)} between two kernels:" if edges else "nothing left to fuse",
    ]
    for remark in edges:
        lines += lines_of(remark)
    return "\n".join([*lines, ""])


def _by_line(place: CallSite) -> list[str]:
    """A line of the model's source with the ops there, for each line."""
    found: dict[str, list[str]] = {}
    for name, source in place.ops:
        found.setdefault(source or "unknown line", []).append(name or "unknown op")
    return [f"{source}: {', '.join(dict.fromkeys(names))}" for source, names in found.items()]
