"""What became of the arguments that a model writes to: remarks about copies."""

from __future__ import annotations

from pipeline import remarks
from pipeline.ir.attributes import ARGUMENT_NAME, IN_PLACE
from pipeline.mlir import defining_op, function, ir, walk


def report_copies(module: ir.Module) -> None:
    """Leaves a remark for each argument of @main that is copied to, once there are buffers."""
    main = function(module, "main")
    named = {}
    for argument, mark in zip(main.regions[0].blocks[0].arguments, main.attributes["arg_attrs"], strict=True):
        if IN_PLACE in mark:
            named[argument] = ir.StringAttr(mark[ARGUMENT_NAME]).value
    for copy in walk(main, "memref.copy"):
        target = copy.operands[1]
        if target in named and defining_op(target) is None:
            remarks.analysis("update-in-place", copy, f"{named[target]}: its new value is copied to it")
