"""Where ops come from: the PyTorch op and the source line that their locations name.

The importer makes locations of the form `"amax"("softmax"("net.py":12:0))`: the node of the graph, the op that the
model calls, the line that calls it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pipeline.mlir import ir, position

_SILENT = ("arith.constant", "tensor.empty", "linalg.fill", "linalg.yield", "linalg.index", "fusion.yield")


def torch_op(location: ir.Location) -> str | None:
    """The op that the model calls, e.g. `softmax`; None where the location names none."""
    names = list(_names(location))
    if not names:
        return None
    return names[-1] if len(names) > 1 else re.sub(r"_\d+$", "", names[0]).strip("_")


def node_names(location: ir.Location) -> list[str]:
    """The names of the nodes of the graph that an op comes from: several where ops were made one."""
    if isinstance(location, ir.FusedLoc):
        return [name for part in location.locations for name in node_names(part)]
    return [str(location.name_str)] if isinstance(location, ir.NameLoc) else []


def origins(ops: Iterable[ir.Operation]) -> list[tuple[str | None, str | None]]:
    """(PyTorch op, `file.py:12`) of `ops` and, before each, of all inside it, each once; what is unknown is None."""
    found: dict[tuple[str | None, str | None], None] = {}

    def visit(op: ir.Operation) -> ir.WalkResult:
        op = op.operation
        if op.name not in _SILENT:
            file, line, _ = position(op.location)
            found.setdefault((torch_op(op.location), f"{file}:{line}" if line else None))
        return ir.WalkResult.ADVANCE

    for op in ops:
        op.walk(visit, ir.WalkOrder.POST_ORDER)
    found.pop((None, None), None)
    return list(found)


def pairs_attribute(pairs: Iterable[tuple[str | None, str | None]]) -> ir.ArrayAttr:
    """Such pairs as an attribute; what is unknown is empty there."""
    return ir.ArrayAttr.get([ir.ArrayAttr.get([ir.StringAttr.get(part or "") for part in pair]) for pair in pairs])


def pairs_of(attribute: ir.Attribute) -> list[tuple[str | None, str | None]]:
    """The inverse of `pairs_attribute`."""
    pairs = [[ir.StringAttr(part).value or None for part in ir.ArrayAttr(pair)] for pair in ir.ArrayAttr(attribute)]
    return [(name, source) for name, source in pairs]


def _names(location: ir.Location) -> Iterable[str]:
    """The names in a location, outermost first; of a fused one, those of the first part that has any."""
    if isinstance(location, ir.NameLoc):
        return [str(location.name_str), *_names(location.child_loc)]
    if isinstance(location, ir.FusedLoc):
        return next(filter(None, map(list, map(_names, location.locations))), [])
    return []
