"""Our own views on their way from torch to linalg, past torch-mlir's passes, which know no such ops.

torch.operator "torch.pipeline.collapse_shape" → pipeline.collapse_shape on torch's tensors → tensor.collapse_shape
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from pipeline import remarks
from pipeline.frontend.importer.own_ops import (
    builtin_type,
    imported,
    imported_name,
    lower_ops,
    result_type,
    take_over,
    to_index,
)
from pipeline.ir.constants import as_index
from pipeline.ir.rewriting import size_of
from pipeline.mlir import arith, defining_op, ir, scf, tensor, walk

_COLLAPSE, _EXPAND = "pipeline.collapse_shape", "pipeline.expand_shape"

_UNKNOWN = ir.ShapedType.get_dynamic_size()

#: Views that torch-mlir makes itself when it takes other ops apart.
_TORCHS = ("torch.aten.view", "torch.aten.reshape", "torch.aten._unsafe_view")


def take_over_views(module: ir.Module) -> None:
    """Makes imported calls of our ops of torch unregistered ones, which torch-mlir's passes leave alone."""
    for call in imported(module, _COLLAPSE, _EXPAND):
        name = imported_name(call)
        source, lengths, *others = call.operands
        attributes: dict[str, ir.Attribute] = {"lengths": _numbers(lengths)}
        sizes: list[ir.Value] = []
        if name == _EXPAND:
            sizes = list(_list(others[0]))
            attributes["proved"] = _flag(others[1])
        take_over(call, name, [source, *sizes], attributes)


def put_views_on_tensors(module: ir.Module) -> None:
    """Has tensor.collapse_shape and tensor.expand_shape, between torch-mlir's own conversions, for all views."""
    views = [op for name in (_COLLAPSE, _EXPAND, *_TORCHS) for op in walk(module, name) if _is_ours(op)]
    lower_ops(views, _view)


def _is_ours(op: ir.Operation) -> bool:
    before_view, after_view = builtin_type(op.operands[0].type), builtin_type(op.results[0].type)
    if before_view is None or after_view is None:
        return False
    is_static = before_view.has_static_shape and after_view.has_static_shape
    return op.name not in _TORCHS or (not is_static and before_view.rank > 0 and after_view.rank > 0)


def _view(op: ir.Operation, source: ir.Value) -> ir.Value:
    kind = result_type(op)
    if op.name in _TORCHS:
        remarks.note("views", "analysis", op.name, "a view of symbolic sizes that torch-mlir made goes through one dim")
        return _through_a_line(source, _sizes_of_view(op, source), kind)
    lengths = list(ir.DenseI64ArrayAttr(op.attributes["lengths"]))
    if op.name == _COLLAPSE:
        return _collapse(source, lengths, kind)
    sizes = [to_index(size) for size in list(op.operands)[1:]]
    if not ir.BoolAttr(op.attributes["proved"]).value:
        source = _checked(source, sizes)
    return _expand(source, lengths, sizes, kind)


def _collapse(source: ir.Value, lengths: Sequence[int], kind: ir.RankedTensorType) -> ir.Value:
    """Each run of dims as one, in the type `kind`."""
    given = ir.RankedTensorType(source.type)
    groups = _groups(lengths)
    shape = [_product([given.shape[dim] for dim in group]) for group in groups]
    result = tensor.CollapseShapeOp(ir.RankedTensorType.get(shape, given.element_type), source, groups).result
    return _cast(result, kind.shape)


def _expand(source: ir.Value, lengths: Sequence[int], sizes: Sequence[ir.Value], kind: ir.RankedTensorType) -> ir.Value:
    """Each dim as a run of dims of the sizes given, in the type `kind`; `sizes` has those of known dims, too."""
    groups = _groups(lengths)
    source = _cast(source, [_product([kind.shape[dim] for dim in group]) for group in groups])
    unknown = [size for dim, size in enumerate(sizes) if kind.is_dynamic_dim(dim)]
    return tensor.ExpandShapeOp(kind, source, groups, unknown, list(kind.shape)).result


def _through_a_line(source: ir.Value, sizes: Sequence[ir.Value], kind: ir.RankedTensorType) -> ir.Value:
    """Row-major data in another shape, whatever the sizes are."""
    rank = ir.RankedTensorType(source.type).rank
    line = _collapse(source, [rank], ir.RankedTensorType.get([_UNKNOWN], kind.element_type))
    return _expand(_checked(line, sizes), [kind.rank], sizes, kind)


def _checked(line: ir.Value, sizes: Sequence[ir.Value]) -> ir.Value:
    """The data if it has as many elements as a shape; else a failed check, and data of that size."""
    wanted = _count(sizes)
    fits = arith.CmpIOp(arith.CmpIPredicate.eq, wanted, size_of(line, 0)).result
    message = ir.StringAttr.get("a view of another number of elements")
    ir.Operation.create("cf.assert", [], [fits], {"msg": message})
    element = ir.RankedTensorType(line.type).element_type
    line = _cast(line, [_UNKNOWN])
    branch = scf.IfOp(fits, [line.type], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        scf.YieldOp([line])
    with ir.InsertionPoint(branch.else_block):
        scf.YieldOp([tensor.EmptyOp([wanted], element).result])
    return branch.results[0]


def _sizes_of_view(view: ir.Operation, source: ir.Value) -> list[ir.Value]:
    """The sizes that an op of torch asks for, where -1 stands for the one that follows from the others."""
    given = _list(view.operands[1])
    known = [to_index(size) for size in given if _constant_int(size) != -1]
    if len(known) == len(given):
        return known
    count = _count([size_of(source, dim) for dim in range(ir.RankedTensorType(source.type).rank)])
    others = arith.MaxSIOp(_count(known), _index(1)).result  # no elements: then -1 may stand for anything
    sizes = iter(known)
    return [arith.DivSIOp(count, others).result if _constant_int(size) == -1 else next(sizes) for size in given]


def _count(sizes: Sequence[ir.Value]) -> ir.Value:
    """The number of elements of a shape."""
    count = _index(1)
    for size in sizes:
        count = arith.MulIOp(count, size).result
    return count


def _groups(lengths: Sequence[int]) -> list[list[int]]:
    """[2, 1] → [[0, 1], [2]]"""
    dims = itertools.count()
    return [list(itertools.islice(dims, length)) for length in lengths]


def _product(sizes: Sequence[int]) -> int:
    return _UNKNOWN if _UNKNOWN in sizes else math.prod(sizes)


def _cast(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    kind = ir.RankedTensorType(value.type)
    wanted = ir.RankedTensorType.get(list(shape), kind.element_type)
    return value if kind == wanted else tensor.CastOp(wanted, value).result


def _index(number: int) -> ir.Value:
    return as_index(number)


def _list(value: ir.Value) -> list[ir.Value]:
    """The elements of a list that is made where it is used."""
    producer = defining_op(value)
    assert producer is not None and producer.name == "torch.prim.ListConstruct", value
    return list(producer.operands)


def _constant_int(value: ir.Value) -> int | None:
    producer = defining_op(value)
    if producer is None or producer.name != "torch.constant.int":
        return None
    return ir.IntegerAttr(producer.attributes["value"]).value


def _numbers(value: ir.Value) -> ir.Attribute:
    """A list of constants as an attribute."""
    numbers = [_constant_int(element) for element in _list(value)]
    assert None not in numbers, value
    return ir.DenseI64ArrayAttr.get(numbers, value.context)


def _flag(value: ir.Value) -> ir.Attribute:
    """A constant bool as an attribute."""
    producer = defining_op(value)
    assert producer is not None and producer.name == "torch.constant.bool", value
    return ir.BoolAttr.get(bool(ir.IntegerAttr(producer.attributes["value"]).value), value.context)
