"""Casts of unknown sizes to numbers, which torch-mlir writes on trust: proved, or checked as the program runs.

They are held until all of the program is lowered, since what is cast decides how canonicalization goes on.
"""

from __future__ import annotations

from pipeline import remarks
from pipeline.frontend.shapes.expressions import HELD, Expressions
from pipeline.ir.constants import as_index
from pipeline.ir.rewriting import before, replace, size_of
from pipeline.mlir import arith, ir, run_pipeline, scf, tensor, walk

_UNKNOWN = ir.ShapedType.get_dynamic_size()

#: What makes sizes of results those of operands; `pipeline.sizes` keeps the sizes that are asked for.
_RESOLVE = "builtin.module(func.func(resolve-shaped-type-result-dims), canonicalize, cse)"


def hold_casts(module: ir.Module) -> None:
    """tensor.cast %x : tensor<?x4xf32> to tensor<2x4xf32>  →  pipeline.held_cast %x, which nothing folds."""
    for op in walk(module, "tensor.cast"):
        if _assumed(op):
            with before(op):
                held = ir.Operation.create(HELD, [op.results[0].type], [op.operands[0]])
            replace(op, list(held.results))


def _assumed(cast: ir.Operation) -> list[int]:
    """The dims whose sizes become known by the cast."""
    source, result = (ir.RankedTensorType(value.type).shape for value in (cast.operands[0], cast.results[0]))
    return [dim for dim, size in enumerate(source) if size == _UNKNOWN and result[dim] != _UNKNOWN]


def resolve_sizes(module: ir.Module) -> None:
    """Has every held cast take the sizes of its operand, too, as they are computed from the function's arguments."""
    for op in walk(module, HELD):
        with before(op):
            sizes = [size_of(op.operands[0], dim) for dim in range(ir.RankedTensorType(op.operands[0].type).rank)]
            held = ir.Operation.create(HELD, [op.results[0].type], [op.operands[0], *sizes])
        replace(op, list(held.results))
    run_pipeline(module.operation, _RESOLVE)


def judge_casts(module: ir.Module, expressions: Expressions) -> None:
    """Makes casts of the held ones; those that are not proved fail a check where a size is another one.

    A cast whose check fails gives a tensor of the sizes that it promises, so that nothing reads outside of the data.
    """
    judged = [(op, _unproved(op, expressions)) for op in walk(module, HELD)]
    for op, unproved in judged:
        kind = op.results[0].type
        with before(op):
            if unproved:
                remarks.missed("shapes", op, f"cast to {kind}: sizes are checked as the program runs")
                result = _checked_cast(op, _all_equal(unproved))
            else:
                result = tensor.CastOp(kind, op.operands[0]).result
        replace(op, [result])


def _unproved(op: ir.Operation, expressions: Expressions) -> list[tuple[ir.Value, int]]:
    """(size, what it is taken to be) for those sizes of a held cast that are not proved."""
    wanted = ir.RankedTensorType(op.results[0].type).shape
    assumed = [(op.operands[1 + dim], wanted[dim]) for dim in _assumed(op)]
    return [(size, number) for size, number in assumed if not expressions.proves(size, number)]


def drop_proved_asserts(module: ir.Module, expressions: Expressions) -> None:
    """cf.assert %0 == %1  →  nothing, where that holds whatever the sizes are."""
    for op in walk(module, "cf.assert"):
        if expressions.truth(op.operands[0]):
            op.erase()


def _all_equal(pairs: list[tuple[ir.Value, int]]) -> ir.Value:
    holds = arith.ConstantOp(ir.IntegerType.get_signless(1), 1).result
    for size, number in pairs:
        wanted = as_index(number)
        holds = arith.AndIOp(holds, arith.CmpIOp(arith.CmpIPredicate.eq, size, wanted).result).result
    return holds


def _checked_cast(op: ir.Operation, holds: ir.Value) -> ir.Value:
    """What a held cast casts, or else a tensor without values of the type that it promises."""
    source, *sizes = op.operands
    kind = ir.RankedTensorType(op.results[0].type)
    shape = [given if size == _UNKNOWN else size for size, given in zip(kind.shape, sizes, strict=True)]
    assert_sizes(holds)
    branch = scf.IfOp(holds, [kind], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        scf.YieldOp([tensor.CastOp(kind, source).result])
    with ir.InsertionPoint(branch.else_block):
        scf.YieldOp([tensor.EmptyOp(shape, kind.element_type).result])
    return branch.results[0]


def assert_sizes(holds: ir.Value) -> None:
    """A check of the call, at the insertion point."""
    message = "a size is none that the model was exported for"
    ir.Operation.create("cf.assert", [], [holds], {"msg": ir.StringAttr.get(message)})
