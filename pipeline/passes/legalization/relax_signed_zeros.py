"""relax-signed-zeros: the larger of 0 and -0 may be either."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from pipeline.mlir import ir, walk
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class RelaxSignedZeros(Pass):
    """Mark arith.maximumf, arith.minimumf and reductions by them with fastmath<nsz>.

    IEEE 754 has 0 larger than -0; PyTorch's vectors take either, and so does a processor's instruction. Seeing to it
    takes six instructions in place of three, one after the other in a reduction. NaN is still handed on.
    """

    name: ClassVar[str] = "relax-signed-zeros"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: ir.Operation) -> None:
        """Marks the ops of one function."""
        for extreme in walk(op, "arith.maximumf", "arith.minimumf", "vector.reduction"):
            if extreme.name != "vector.reduction" or str(extreme.attributes["kind"]) in _KINDS:
                extreme.attributes["fastmath"] = _with_nsz(extreme)


_KINDS = ("#vector.kind<maximumf>", "#vector.kind<minimumf>")


def _with_nsz(op: ir.Operation) -> ir.Attribute:
    """The flags that the op has, and nsz."""
    given = re.search(r"<(.*)>", str(op.attributes["fastmath"])) if "fastmath" in op.attributes else None
    flags = {flag.strip() for flag in given[1].split(",")} if given else set()
    if "fast" in flags:
        return op.attributes["fastmath"]
    return ir.Attribute.parse(f"#arith.fastmath<{','.join(sorted({*flags, 'nsz'} - {'none'}))}>")
