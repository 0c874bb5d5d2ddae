"""Readable names and kinds for what a kernel does: `fused_conv2d_add_relu`, `matmul`, `softmax`."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from contextvars import ContextVar

from pipeline.analysis.product_body import sums_products
from pipeline.ir.attributes import KERNEL, TRANSFORM
from pipeline.ir.linalg_op import any_structured, structured
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

#: Longest first: `conv_2d` is the start of `conv_2d_nchw_fchw`, `depthwise_conv_2d` that of others.
_PREFIXES = sorted(_NAMED, key=len, reverse=True)

_BODY = {"maximumf": "max", "minimumf": "min", "maxnumf": "max", "minnumf": "min", "extf": "cast", "truncf": "cast"}
_BODY |= dict.fromkeys(("extsi", "extui", "trunci", "sitofp", "uitofp", "fptosi", "fptoui"), "cast")
_BODY |= {"cmpf": "compare", "cmpi": "compare", "negf": "neg", "absf": "abs", "absi": "abs", "extract": "gather"}
#: What several words together are called; a word in brackets may be missing.
_COMPOSITES = (
    ("softmax", "reduce_max sub exp reduce_add div"),
    ("softmax", "reduce_max sub exp reduce_add [cast] compare reduce_andi div select"),  # some rows masked
    ("log_softmax", "reduce_max sub exp reduce_add log sub"),
    ("layer_norm", "reduce_add div sub mul reduce_add div add rsqrt mul"),
    ("group_norm", "reduce_add div sub mul reduce_add div add rsqrt sub mul"),
    ("rms_norm", "mul reduce_add div [add] rsqrt mul"),
    ("var", "reduce_add div sub mul reduce_add div"),
    ("gelu", "mul erf add mul mul"),
    ("gelu", "div erf add mul mul"),
    ("gelu_tanh", "mul mul mul add mul tanh add mul mul"),
    ("silu", "neg exp add div mul"),
    ("sigmoid", "neg exp add div"),
    ("attention", "matmul [mul] [add] [select] softmax matmul"),
)

_SILENT = {"index_cast", "index", "yield", "constant", "bitcast"}


_known: ContextVar[dict[ir.Operation, list[str]] | None] = ContextVar("labels", default=None)


@contextlib.contextmanager
def labels_kept() -> Iterator[None]:
    """Finds the label of each op once. No op may be changed or erased in it."""
    token = _known.set({})
    try:
        yield
    finally:
        _known.reset(token)


def op_label(op: ir.Operation) -> list[str]:
    """The words for one linalg op: a named op's own name, or what a generic's body computes, in order."""
    known = _known.get()
    if known is None:
        return _op_label(op)
    if op not in known:
        known[op] = _op_label(op)
    return list(known[op])


def _op_label(op: ir.Operation) -> list[str]:
    if KERNEL in op.attributes:
        return [ir.StringAttr(op.attributes[KERNEL]).value]
    if TRANSFORM in op.attributes:
        return ["fourier_transform"]
    short = op.name.partition(".")[2]
    if short == "insert_slice":
        return ["concat"]
    if short != "generic":
        return [next((_NAMED[prefix] for prefix in _PREFIXES if short.startswith(prefix)), short)]
    words = _body_words(op)
    if is_reduction(op):
        if is_product(op):
            return [_product_word(op)]
        return compose([*words[:-1], f"reduce_{words[-1]}"]) if words else ["reduce"]
    return compose(words) or [_copy_word(op)]


def _product_word(op: ir.Operation) -> str:
    """`matmul`, or `conv2d` for one whose data is read through windows that move along two dims."""
    view = any_structured(op)
    assert view is not None
    sliding = max(_sliding_dims(indexing) for indexing in view.maps[: view.inputs])
    return f"conv{sliding}d" if sliding else "matmul"


def _sliding_dims(indexing: ir.AffineMap) -> int:
    return sum(isinstance(expression, ir.AffineAddExpr) for expression in indexing.results)


def _body_words(op: ir.Operation) -> list[str]:
    words: list[str] = []
    body = op.regions[0].blocks[0]
    for inner in body.operations:
        inner = inner.operation
        short = inner.name.partition(".")[2]
        if short in _SILENT or _is_constant_cast(inner) or (short in ("cmpf", "cmpi") and _feeds_only_selects(inner)):
            continue
        if short == "select":
            words.append("relu" if _is_relu(inner) else "select")
        elif short in ("maximumf", "maxnumf") and any(map(_is_zero, inner.operands)):
            words.append("relu")
        else:
            words.append(_BODY.get(short, short.rstrip("if") if short[:-1] in _ARITH else short))
    return words


_ARITH = {"add", "sub", "mul", "div", "rem"} | {"divs", "divu", "rems", "remu"}


def _is_constant_cast(op: ir.Operation) -> bool:
    producer = defining_op(op.operands[0]) if op.name in ("arith.truncf", "arith.extf") else None
    return producer is not None and producer.name == "arith.constant"


def _feeds_only_selects(compare: ir.Operation) -> bool:
    return all(use.owner.operation.name == "arith.select" for use in compare.results[0].uses)


_GREATER = (arith.CmpFPredicate.UGT, arith.CmpFPredicate.OGT, arith.CmpFPredicate.UGE, arith.CmpFPredicate.OGE)


def _is_relu(select: ir.Operation) -> bool:
    """select(x > 0, x, 0)"""
    condition, x, other = select.operands
    compare = defining_op(condition)
    if compare is None or compare.name != "arith.cmpf" or not _is_zero(other):
        return False
    predicate = arith.CmpFPredicate(ir.IntegerAttr(compare.attributes["predicate"]).value)
    return predicate in _GREATER and list(compare.operands) == [x, other]


def _is_zero(value: ir.Value) -> bool:
    constant = defining_op(value)
    number = constant.attributes["value"] if constant is not None and constant.name == "arith.constant" else None
    return isinstance(number, ir.FloatAttr) and number.value == 0.0


def _copy_word(op: ir.Operation) -> str:
    view = structured(op)
    assert view is not None
    maps = view.maps
    if len(maps) == 1:
        return "fill"
    if maps[0].n_dims and len(maps[0].results) < len(maps[-1].results):
        return "broadcast"
    return "copy" if maps[0] == maps[-1] else "transpose"


def is_reduction(op: ir.Operation) -> bool:
    """Whether a linalg.generic has a reduction loop."""
    return "reduction" in str(op.attributes["iterator_types"])


def is_product(op: ir.Operation) -> bool:
    """Whether an op sums products of elements of which one is used for many results, as a matrix product does."""
    view = any_structured(op)
    if view is None or view.inputs < 2 or not any(view.reductions) or not sums_products(view):
        return False
    loops = [loop for loop, reduces in enumerate(view.reductions) if not reduces and view.sizes[loop] != 1]
    read = [set(view.loops_read(operand)) for operand in range(2)]
    return any(loop not in access for access in read for loop in loops) or not loops and linalg.isa_contraction_op(op)


def group_kind(ops: Sequence[ir.Operation]) -> str:
    """The kind of a group: that of its heaviest op."""
    return heaviest_kind([op_kind(op) for op in ops])


def heaviest_kind(kinds: Sequence[str]) -> str:
    """The kind of a group of ops of these kinds, in program order."""
    if "matmul" in kinds[:-1] and "reduction" in kinds:
        return "attention"
    for kind in ("conv", "matmul", "pooling", "scan", "sort", "scatter", "reduction"):
        if kind in kinds:
            return kind
    return "elementwise"


def op_kind(op: ir.Operation) -> str:
    """The kind of kernel that one op would be by itself."""
    if KERNEL in op.attributes:
        return ir.StringAttr(op.attributes[KERNEL]).value
    short = op.name.partition(".")[2]
    if "conv" in short:
        return "conv"
    if "matmul" in short or short in ("matvec", "vecmat", "dot"):
        return "matmul"
    if short.startswith("pooling"):
        return "pooling"
    if short == "generic" and is_reduction(op):
        if not is_product(op):
            return "reduction"
        return "matmul" if _product_word(op) == "matmul" else "conv"
    return "elementwise"


def compose(words: Sequence[str]) -> list[str]:
    """The words with those that together have a name replaced by it: [add, div, erf, add, mul, mul] -> [add, gelu]."""
    return list(_compose(tuple(words)))


@functools.cache
def _compose(words: tuple[str, ...]) -> tuple[str, ...]:
    found = list(words)
    for name, pattern in _COMPOSITES:
        place = 0
        while place < len(found):
            length = _matches(found[place:], pattern.split())
            if length:
                found[place : place + length] = [name]
            place += 1
    return tuple(found)


def _matches(words: Sequence[str], pattern: Sequence[str]) -> int:
    """How many words at the start of `words` a pattern covers; 0 if it does not match there."""
    count = 0
    for part in pattern:
        if count < len(words) and words[count] == part.strip("[]"):
            count += 1
        elif not part.startswith("["):
            return 0
    return count


def words_of(ops: Sequence[ir.Operation]) -> list[str]:
    """The words for several ops, in order; a concatenation has one, however many ops insert its parts."""
    later = {use.owner.operation for op in ops if op.name == "tensor.insert_slice" for use in op.results[0].uses}
    return [word for op in ops if op.name != "tensor.insert_slice" or op not in later for word in op_label(op)]


def group_label(ops: Sequence[ir.Operation]) -> str:
    """`fused_a_b_c` for several words, `a` for one."""
    return label_of(words_of(ops))


def label_of(words: Sequence[str]) -> str:
    """`fused_a_b_c` for several words, `a` for one; those that together have a name are replaced by it."""
    words = compose(words)
    if len(words) > NAME_OPS:
        words = [*words[:NAME_OPS], "etc"]
    return words[0] if len(words) == 1 else "_".join(["fused", *words])
