"""Where ops come from: the PyTorch op, the source line and the module of the model that their locations name.

The importer makes locations of the form `"amax"("softmax"(fused<"encoder.0">["net.py":12:0]))`: the node of the graph,
the op that the model calls, the module that calls it, the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pipeline.mlir import ir, position
from pipeline.runtime.interface.code import Origin

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


def module_path(location: ir.Location) -> str | None:
    """The module of the model that an op comes from, e.g. `encoder.layer.3`; None where the location names none."""
    if isinstance(location, ir.NameLoc):
        return module_path(location.child_loc)
    if not isinstance(location, ir.FusedLoc):
        return None
    if location.metadata is not None:
        return ir.StringAttr(location.metadata).value
    return next(filter(None, map(module_path, location.locations)), None)


def origins(ops: Iterable[ir.Operation]) -> list[Origin]:
    """The origins of `ops` and, before each, of all inside it, each once."""
    places: dict[ir.Attribute, ir.Location] = {}  # those of the ops of a body are often one

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name not in _SILENT:
            location = op.location
            places.setdefault(location.attr, location)
        return ir.WalkResult.ADVANCE

    for op in ops:
        op.walk(visit, ir.WalkOrder.POST_ORDER)
    found = dict.fromkeys(map(_origin, places.values()))
    found.pop(Origin(None, None), None)
    return list(found)


def _origin(location: ir.Location) -> Origin:
    file, line, _ = position(location)
    return Origin(torch_op(location), f"{file}:{line}" if line else None, module_path(location))


def origins_attribute(origins: Iterable[Origin]) -> ir.ArrayAttr:
    """Origins as an attribute; what is unknown is empty there, an unknown module left out."""
    parts = [one if one.module else one[:2] for one in origins]
    return ir.ArrayAttr.get([ir.ArrayAttr.get([ir.StringAttr.get(part or "") for part in one]) for one in parts])


def origins_of(attribute: ir.Attribute) -> list[Origin]:
    """The inverse of `origins_attribute`."""
    return [
        Origin(*(ir.StringAttr(part).value or None for part in ir.ArrayAttr(one))) for one in ir.ArrayAttr(attribute)
    ]


def _names(location: ir.Location) -> Iterable[str]:
    """The names in a location, outermost first; of a fused one, those of the first part that has any."""
    if isinstance(location, ir.NameLoc):
        return [str(location.name_str), *_names(location.child_loc)]
    if isinstance(location, ir.FusedLoc):
        return next(filter(None, map(list, map(_names, location.locations))), [])
    return []
