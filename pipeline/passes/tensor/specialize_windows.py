"""specialize-windows: convolutions and pools that are written as linalg.generic get their names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.indexing_maps import loop_of
from pipeline.ir.linalg_op import LinalgOp, structured
from pipeline.ir.reshapes import unit_groups
from pipeline.ir.rewriting import before, build_generic, copy_attributes, copy_body, iterator_types, replace
from pipeline.mlir import captured_values, clone, func, function, ir, run_pipeline, tensor
from pipeline.passmanager.patterns import PatternPass, pattern

#: What ops with windows are called.
_OF_WINDOWS = ("linalg.conv", "linalg.depthwise", "linalg.pooling")


@dataclass(frozen=True)
class SpecializeWindows(PatternPass):
    """Give a linalg.generic that is a convolution or a pool its name, where MLIR has one for it.

    By it layouts, Winograd's algorithm, convolutions by phases and pools are found. The loops may come in any order. A
    convolution in groups of one channel each is a depthwise one.
    """

    name: ClassVar[str] = "specialize-windows"
    anchor: ClassVar[str] = "func.func"

    @pattern("linalg.generic")
    def drop_unit_channels(self, generic: ir.Operation) -> bool:
        """x[g, 1, h + k] * w[g, 1, 1, k]   ->   x[g, h + k] * w[g, k], of reshapes of the two"""
        view = _view_of_windows(generic)
        loops = _unit_channels(view) if view is not None else set()
        if view is None or not loops or any(size is None for size in view.sizes):
            return False
        _drop(view, loops)
        return True

    @pattern("linalg.generic")
    def specialize(self, generic: ir.Operation) -> bool:
        """generic { out + x[.., i + k] * w[k] }   ->   conv(x, w), and likewise for pools"""
        view = _view_of_windows(generic)
        return view is not None and _specialize(view)


def _view_of_windows(generic: ir.Operation) -> LinalgOp | None:
    """An op with one result that reads windows of its first input; None if it is something else."""
    view = structured(generic)
    if view is None or view.inputs != 2 or len(view.outputs) != 1 or not any(view.reductions):
        return None
    slides = [any(loop_of(index) is None for index in indexing.results) for indexing in view.maps]
    return view if slides == [True, False, False] and set(captured_values(generic)) <= set(generic.operands) else None


def _unit_channels(view: LinalgOp) -> set[int]:
    """Of a convolution in groups, the loops over the channels of one group, before and behind, that have one."""
    data, weight, out = (set(view.loops_read(operand)) for operand in range(3))
    if not data & weight & out:
        return set()
    return {loop for loop in (data & weight - out) | (weight & out - data) if view.sizes[loop] == 1}


def _drop(view: LinalgOp, loops: set[int]) -> None:
    """Has an op run without loops of one iteration, on operands without their dims."""
    kept = [loop for loop in range(view.loops) if loop not in loops]
    moved = _renumbered(view.loops, kept)
    dims = [
        [dim for dim, index in enumerate(indexing.results) if loop_of(index) not in loops] for indexing in view.maps
    ]
    maps = [
        ir.AffineMap.get(len(kept), 0, [indexing.results[dim].compose(moved) for dim in left])
        for indexing, left in zip(view.maps, dims, strict=True)
    ]
    with before(view.op):
        *inputs, init = (_collapsed(operand, left) for operand, left in zip(view.op.operands, dims, strict=True))
        iterators = iterator_types(view.reductions[loop] for loop in kept)
        made = build_generic(inputs, [init], maps, iterators, lambda elements: copy_body(view, elements))
        copy_attributes(view.op, made)
        kind = ir.RankedTensorType(view.op.results[0].type)
        groups = unit_groups(dims[-1], kind.rank)
        result = tensor.ExpandShapeOp(kind, made.results[0], groups, [], list(kind.shape)).result
    replace(view.op, [result])


def _renumbered(loops: int, order: Sequence[int]) -> ir.AffineMap:
    """From the loops in this order to all loops; those that are left out are 0."""
    places = [
        ir.AffineExpr.get_dim(order.index(n)) if n in order else ir.AffineExpr.get_constant(0) for n in range(loops)
    ]
    return ir.AffineMap.get(len(order), 0, places)


def _collapsed(value: ir.Value, dims: Sequence[int]) -> ir.Value:
    kind = ir.RankedTensorType(value.type)
    if len(dims) == kind.rank:
        return value
    smaller = ir.RankedTensorType.get([kind.shape[dim] for dim in dims], kind.element_type)
    return tensor.CollapseShapeOp(smaller, value, unit_groups(dims, kind.rank)).result


def _specialize(view: LinalgOp) -> bool:
    """Has MLIR's pass look at the op alone, with its loops in an order that named ops have."""
    for order in _orders(view):
        module = _alone(view, order)
        run_pipeline(module.operation, "builtin.module(func.func(linalg-specialize-generic-ops))")
        block = function(module, "main").regions[0].blocks[0]
        made = [op.operation for op in block.operations][:-1]
        if len(made) == 1 and made[0].name.startswith(_OF_WINDOWS):
            with before(view.op):
                named = clone(made[0], dict(zip(block.arguments, view.op.operands, strict=True)))
            copy_attributes(view.op, named, "pipeline.")
            replace(view.op, list(named.results))
            return True
    return False


def _orders(view: LinalgOp) -> Iterator[list[int]]:
    """The loops of the result and those of the sum, as the weight has them; also with windows in front of channels."""
    parallel = view.loops_read(2)
    summed = [loop for loop in view.loops_read(1) if loop in view.summed]
    slid = [loop for loop in parallel if loop not in (*view.loops_read(0), *view.loops_read(1))]
    others = [loop for loop in parallel if loop not in slid]
    orders = [[*parallel, *summed], [*others[:1], *slid, *others[1:], *summed]]
    return (order for order in orders if sorted(order) == list(range(view.loops)))


def _alone(view: LinalgOp, order: Sequence[int]) -> ir.Module:
    """A module with a function that only runs a copy of the op, with its loops in this order."""
    op = view.op
    moved = _renumbered(view.loops, order)
    maps = [
        ir.AffineMap.get(view.loops, 0, [index.compose(moved) for index in indexing.results]) for indexing in view.maps
    ]
    iterators = iterator_types(view.reductions[loop] for loop in order)
    kind = ir.FunctionType.get([operand.type for operand in op.operands], [result.type for result in op.results])
    with op.location:
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            block = func.FuncOp("main", kind).add_entry_block()
        with ir.InsertionPoint(block):
            *inputs, init = block.arguments
            made = build_generic(inputs, [init], maps, iterators, lambda elements: copy_body(view, elements))
            func.ReturnOp(list(made.results))
    return module
