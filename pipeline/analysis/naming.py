"""Readable names and kinds for what a kernel does: `fused_conv2d_add_relu`, `matmul`, `softmax`."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.mlir import arith, defining_op, ir, linalg

#: Longer names are cut after this many ops.
NAME_OPS = 6

_NAMED = {
    "matmul": "matmul",
    "batch_matmul": "matmul",
    "matvec": "matmul",
    "vecmat": "matmul",
    "dot": "matmul",
    "conv_1d": "conv1d",
    "conv_2d": "conv2d",
    "conv_3d": "conv3d",
    "depthwise_conv_1d": "depthwise_conv1d",
    "depthwise_conv_2d": "depthwise_conv2d",
    "depthwise_conv_3d": "depthwise_conv3d",
    "pooling": "pool",
}

_BODY = {"maximumf": "max", "minimumf": "min", "maxnumf": "max", "minnumf": "min", "extf": "cast", "truncf": "cast"}
_BODY |= dict.fromkeys(("extsi", "extui", "trunci", "sitofp", "uitofp", "fptosi", "fptoui"), "cast")
_BODY |= {"cmpf": "compare", "cmpi": "compare", "negf": "neg", "absf": "abs", "absi": "abs", "extract": "gather"}
_SILENT = {"index_cast", "index", "yield", "constant", "bitcast"}


def op_label(op: ir.Operation) -> list[str]:
    """The words for one linalg op: a named op's own name, or what a generic's body computes, in order."""
    if "pipeline.kernel" in op.attributes:
        return [ir.StringAttr(op.attributes["pipeline.kernel"]).value]
    short = op.name.partition(".")[2]
    for prefix in sorted(_NAMED, key=len, reverse=True):
        if short.startswith(prefix):
            return [_NAMED[prefix]]
    if short != "generic":
        return [short]
    words = _body_words(op)
    if is_reduction(op) and is_product(op):
        return ["matmul"]
    if is_reduction(op):
        return [*words[:-1], f"reduce_{words[-1]}"] if words else ["reduce"]
    return words or [_copy_word(op)]


def _body_words(op: ir.Operation) -> list[str]:
    words: list[str] = []
    body = op.regions[0].blocks[0]
    for inner in body.operations:
        inner = inner.operation
        short = inner.name.partition(".")[2]
        if short in _SILENT or (short in ("cmpf", "cmpi") and _feeds_only_selects(inner)):
            continue
        if short == "select":
            words.append("relu" if _is_relu(inner) else "select")
        else:
            words.append(_BODY.get(short, short.rstrip("if") if short[:-1] in _ARITH else short))
    return words


_ARITH = {"add", "sub", "mul", "div", "rem"} | {"divs", "divu", "rems", "remu"}


def _feeds_only_selects(compare: ir.Operation) -> bool:
    return all(use.owner.operation.name == "arith.select" for use in compare.results[0].uses)


_GREATER = (arith.CmpFPredicate.UGT, arith.CmpFPredicate.OGT, arith.CmpFPredicate.UGE, arith.CmpFPredicate.OGE)


def _is_relu(select: ir.Operation) -> bool:
    """select(x > 0, x, 0)"""
    condition, x, other = select.operands
    compare, zero = defining_op(condition), defining_op(other)
    if compare is None or zero is None or compare.name != "arith.cmpf" or zero.name != "arith.constant":
        return False
    predicate = arith.CmpFPredicate(ir.IntegerAttr(compare.attributes["predicate"]).value)
    value = zero.attributes["value"]
    is_zero = isinstance(value, ir.FloatAttr) and value.value == 0.0
    return is_zero and predicate in _GREATER and list(compare.operands) == [x, other]


def _copy_word(op: ir.Operation) -> str:
    maps = [ir.AffineMapAttr(a).value for a in op.attributes["indexing_maps"]]
    if len(maps) == 1:
        return "fill"
    if maps[0].n_dims and len(maps[0].results) < len(maps[-1].results):
        return "broadcast"
    return "copy" if maps[0] == maps[-1] else "transpose"


def is_reduction(op: ir.Operation) -> bool:
    """Whether a linalg.generic has a reduction loop."""
    return any("reduction" in str(kind) for kind in op.attributes["iterator_types"])


def is_product(op: ir.Operation) -> bool:
    """Whether an op sums products of elements of which one is used for many results, as a matrix product does."""
    if not linalg.isa_contraction_op(op):
        return False
    maps = [ir.AffineMapAttr(one).value for one in linalg.get_indexing_maps(op)]
    return any(loop not in list(indexing.results) for indexing in maps[:-1] for loop in maps[-1].results)


def group_kind(ops: Sequence[ir.Operation]) -> str:
    """The kind of a group: that of its heaviest op."""
    kinds = [op_kind(op) for op in ops]
    if "matmul" in kinds[:-1] and "reduction" in kinds:
        return "attention"
    for kind in ("conv", "matmul", "pooling", "scan", "sort", "scatter", "reduction"):
        if kind in kinds:
            return kind
    return "elementwise"


def op_kind(op: ir.Operation) -> str:
    """The kind of kernel that one op would be by itself."""
    if "pipeline.kernel" in op.attributes:
        return ir.StringAttr(op.attributes["pipeline.kernel"]).value
    short = op.name.partition(".")[2]
    if "conv" in short:
        return "conv"
    if "matmul" in short or short in ("matvec", "vecmat", "dot"):
        return "matmul"
    if short.startswith("pooling"):
        return "pooling"
    if short == "generic" and is_reduction(op):
        return "matmul" if is_product(op) else "reduction"
    return "elementwise"


def group_label(ops: Sequence[ir.Operation]) -> str:
    """`fused_a_b_c` for several words, `a` for one."""
    words = [word for op in ops for word in op_label(op)]
    if len(words) > NAME_OPS:
        words = [*words[:NAME_OPS], "etc"]
    return words[0] if len(words) == 1 else "_".join(["fused", *words])
