"""Attention, found in the ops of a kernel: softmax over the keys of the scores of queries, times the values.

Found on tensors and on buffers alike. What is elementwise in front of the products, between the scores and the softmax
and behind everything may be anything; `Attention` says how to get at a single element of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.analysis.access import Loops, coefficient, loops_of
from pipeline.analysis.epilogue import base, is_fill
from pipeline.analysis.masks import limit_of_keys
from pipeline.mlir import defining_op, ir

_BESIDE = ("arith.constant", "tensor.empty", "memref.alloc", "memref.alloca", "func.return")
_VIEWS = ("tensor.expand_shape", "tensor.collapse_shape", "memref.expand_shape", "memref.collapse_shape")


@dataclass(frozen=True, eq=False)
class Step:
    """A linalg.generic with one result.

    Attributes:
        op, loops: the op and its loops, all of known size.
        sources: for each input the step that computes it; None for what comes from outside of the kernel.
        start: the number that the result is filled with before; None without one.
    """

    op: ir.Operation
    loops: Loops
    sources: tuple[Step | None, ...]
    start: ir.Value | None

    @property
    def body(self) -> ir.Block:
        """What runs for each iteration."""
        return self.op.regions[0].blocks[0]

    @property
    def names(self) -> list[str]:
        """The names of the ops of the body without the terminator."""
        return [op.operation.name for op in self.body.operations][:-1]

    @property
    def yielded(self) -> ir.Value:
        """What the body hands out."""
        return self.body.operations[len(self.body.operations) - 1].operation.operands[0]

    @property
    def result(self) -> ir.Value:
        """The tensor that is computed, or the buffer that is written."""
        return self.op.results[0] if len(self.op.results) else self.op.operands[self.loops.inputs]

    @property
    def element(self) -> ir.Type:
        """The type of the elements of the result."""
        return ir.ShapedType(self.result.type).element_type

    @property
    def is_elementwise(self) -> bool:
        """Whether each element of the result is computed by itself."""
        computes = all(name.startswith(("arith.", "math.")) or name == "linalg.index" for name in self.names)
        reads = list(self.body.arguments[len(self.body.arguments) - 1].uses)
        own = self.large(self.loops.inputs)
        every = [loop for loop, size in enumerate(self.loops.sizes) if size != 1]
        return computes and not any(self.loops.reductions) and own is not None and sorted(own) == every and not reads

    def large(self, operand: int) -> list[int] | None:
        """The loop along each dim of an operand that has more than one element; None if an index is no loop."""
        if not isinstance(self.op.operands[operand].type, ir.ShapedType):
            return []
        found = []
        sizes = ir.ShapedType(self.op.operands[operand].type).shape
        for one, size in zip(self.loops.maps[operand].results, sizes, strict=True):
            if isinstance(one, ir.AffineDimExpr):
                found += [ir.AffineDimExpr(one).position] * (size != 1)
            elif one != ir.AffineConstantExpr.get(0) or size != 1:
                return None
        return found


@dataclass(frozen=True)
class Attention:
    """The parts of an attention.

    Attributes:
        scores: the product of queries and keys; its result has a dim `query`, a dim `key`, and dims of the batch. Only
            dims of more than one element count.
        of_queries, of_keys: which of its operands are which.
        highest: the maximum along the keys of what the softmax is taken of; its body computes that from the scores.
        key, query: dims of the scores; `query` is -1 if there is one query only.
        sizes: of the scores.
        loops_of_scores: the loops of `highest` along the dims of the scores.
        width: of a query and a key.
        weighted: the product of the weights and the values.
        of_values: which of its operands are the values.
        value_loop, value_width: its loop along a value, and how long that is.
        zero_if_masked: whether a row of which all scores are -inf has the result 0, and not NaN.
        limit: keys from `query + limit` on have the score -inf; None if no such thing is known.
    """

    scores: Step
    of_queries: int
    of_keys: int
    highest: Step
    key: int
    query: int
    sizes: tuple[int, ...]
    loops_of_scores: list[int]
    width: int
    weighted: Step
    of_values: int
    value_loop: int
    value_width: int
    zero_if_masked: bool
    limit: int | None

    @property
    def batch(self) -> list[int]:
        """The dims of the scores that are neither the queries' nor the keys'."""
        return [dim for dim in range(len(self.sizes)) if dim not in (self.key, self.query)]

    @property
    def queries(self) -> int:
        """How many queries there are for each element of the batch."""
        return 1 if self.query < 0 else self.sizes[self.query]


class _NotOne(Exception):
    """Says why some ops are no attention."""


def read_attention(function: ir.Operation) -> Attention | str:
    """The attention that a kernel is, and nothing else; or why it is none."""
    try:
        return _read(function)
    except _NotOne as reason:
        return str(reason)


def _need(condition: bool, reason: str) -> None:
    if not condition:
        raise _NotOne(reason)


def _read(function: ir.Operation) -> Attention:
    steps = _steps([op.operation for op in function.regions[0].blocks[0].operations])
    products = [step for step in steps if _is_product(step)]
    _need(len(products) == 2, "there are not two products")
    scores, weighted = products
    (highest,) = _only([s for s in steps if _is_fold(s, "arith.maximumf", float("-inf"))], "no maximum of each row")
    sums = [s for s in steps if s.names == ["arith.addf"] and _is_fold(s, "arith.addf", 0.0)]
    (total,) = _only(sums, "no sum of each row")
    sizes = tuple(size for size in ir.ShapedType(scores.result.type).shape if size != 1)
    rows = Rows(scores, sizes, highest, _folded(highest))
    along = rows.loops(highest)
    reduced = [dim for dim, loop in enumerate(along) if highest.loops.reductions[loop]]
    _need(len(reduced) == 1, "there is one key only")
    (key,) = reduced
    (exponential,) = _only([s for s in steps if _is_exponential(s, rows)], "no exp of scores")
    every = [s for s in steps if _is_all_masked(s, rows)]
    _need(total.sources == (exponential,) and len(every) <= 1, "the sum is not that of exponentials")
    weights = next((one for one in weighted.sources if one is not None and total in one.sources), None)
    _need(weights is not None, "the weights are not divided by their sum")
    assert weights is not None
    _need(_is_division(weights, exponential, total, every), "the weights are not divided by their sum")
    for step in (highest, exponential, total, weights, *every):
        _need(_is_of_rows(step, rows, key, {highest, total, *every}), "rows are not read as they are written")
    between: set[Step] = set()
    for step in (one for one in (*highest.sources, *exponential.sources) if one not in (None, highest)):
        between |= _ancestors(step, {scores})
    _need(scores in between, "the softmax is not that of the product")
    for step in between - {scores}:
        _need(_reads_scores_in_place(step, scores, sizes), "scores are not computed one by one")
    queries, keys, query = _sides(scores, key, sizes)
    of_values, value_loop = _values(weighted, weights, key, query)
    used = {scores, weighted, highest, total, exponential, weights, *every} | between
    for product, operand in ((scores, queries), (scores, keys), (weighted, of_values)):
        source = product.sources[operand]
        used |= set() if source is None else _ancestors(source, set())
    behind = [step for step in steps if step not in used]
    _need(all(step.is_elementwise and _depends(step, weighted) for step in behind), "there are other ops")
    inner = [step for step in steps if step not in behind and (step != weighted or behind)]
    _need(_all_private(function, inner), "more is returned")
    _need(str(exponential.element) == str(highest.element) == str(scores.element) == "f32", "no softmax in float32")
    width = next(size for size, reduces in zip(scores.loops.sizes, scores.loops.reductions, strict=True) if reduces)
    return Attention(
        scores=scores,
        of_queries=queries,
        of_keys=keys,
        highest=highest,
        key=key,
        query=query,
        sizes=sizes,
        loops_of_scores=along,
        width=width or 0,
        weighted=weighted,
        of_values=of_values,
        value_loop=value_loop,
        value_width=weighted.loops.sizes[value_loop] or 0,
        zero_if_masked=bool(every),
        limit=limit_of_keys(highest, rows.score, along, key, query),
    )


def _steps(ops: Sequence[ir.Operation]) -> list[Step]:
    writers: dict[ir.Value, Step] = {}
    fills: dict[ir.Value, ir.Value] = {}
    steps = []
    for op in ops:
        if op.name in _BESIDE or (op.name in _VIEWS and isinstance(op.operands[0], ir.BlockArgument)):
            continue
        _need(op.name in ("linalg.generic", "linalg.fill"), f"there is a {op.name}")
        if is_fill(op):
            fills[op.results[0] if len(op.results) else op.operands[1]] = op.operands[0]
            continue
        loops = loops_of(op)
        _need(loops is not None and None not in loops.sizes and 0 not in loops.sizes, "a size is not known, or 0")
        assert loops is not None
        _need(len(loops.outputs) == 1, "an op has several results")
        inputs = list(op.operands)[: loops.inputs]
        others = {base(value) for value in writers if base(value) != value}
        _need(not any(base(value) in others or base(value) in writers and value not in writers for value in inputs),
              "an op reads a part of what another one writes")  # fmt: skip
        output = op.operands[loops.inputs]
        step = Step(op, loops, tuple(map(writers.get, inputs)), fills.pop(output, None))
        writers[step.result] = step
        steps.append(step)
    return steps


def _only(found: list[Step], reason: str) -> list[Step]:
    _need(len(found) == 1, reason)
    return found


def _is_product(step: Step) -> bool:
    """0 + the sum of a * b along one loop, in float32, of numbers that may be widened before."""
    arguments = list(step.body.arguments)
    names = [name for name in step.names if name != "arith.extf"]
    if len(arguments) != 3 or sorted(names) != ["arith.addf", "arith.mulf"] or sum(step.loops.reductions) != 1:
        return False
    total = defining_op(step.yielded)
    if total is None or total.name != "arith.addf" or arguments[2] not in list(total.operands):
        return False
    multiplied = next(op.operation for op in step.body.operations if op.operation.name == "arith.mulf")
    factors = {_before_widening(value) for value in multiplied.operands}
    return step.large(2) is not None and factors == set(arguments[:2]) and _is_number(step.start, 0.0)


def _before_widening(value: ir.Value) -> ir.Value:
    op = defining_op(value)
    return op.operands[0] if op is not None and op.name == "arith.extf" else value


def _is_number(value: ir.Value | None, number: float) -> bool:
    op = None if value is None else defining_op(value)
    if op is None or op.name != "arith.constant" or not isinstance(op.attributes["value"], ir.FloatAttr):
        return False
    return bool(ir.FloatAttr(op.attributes["value"]).value == number)


def _is_fold(step: Step, name: str, start: float) -> bool:
    """Whether a step combines the elements of a row, or what its body makes of each."""
    computes = all(one.startswith(("arith.", "math.")) or one == "linalg.index" for one in step.names)
    if not computes or sum(step.loops.reductions) != 1 or len(step.sources) != step.loops.inputs:
        return False
    op = defining_op(step.yielded)
    if op is None or op.name != name or step.body.arguments[step.loops.inputs] not in list(op.operands):
        return False
    return _is_number(step.start, start)


def _folded(step: Step) -> ir.Value:
    """What a fold takes of each element."""
    op = defining_op(step.yielded)
    assert op is not None
    out = step.body.arguments[step.loops.inputs]
    return next(operand for operand in op.operands if operand != out)


@dataclass(frozen=True)
class Rows:
    """What the softmax is taken of: `score`, in the body of `highest`, from the product `scores`, of some sizes."""

    scores: Step
    sizes: tuple[int, ...]
    highest: Step
    score: ir.Value

    def loops(self, step: Step) -> list[int]:
        """The loops of a step along the dims of the scores that it reads."""
        for operand, source in enumerate(step.sources):
            own = step.large(operand)
            if source is None or own is None or not _depends(source, self.scores):
                continue
            if tuple(step.loops.sizes[loop] for loop in own) == self.sizes:
                return own
        raise _NotOne("rows are not read as they are written")

    def is_score(self, step: Step, value: ir.Value) -> bool:
        """Whether a value of a body is `score`, computed in the same way from the same."""
        return self._text(step, value) == self._text(self.highest, self.score)

    def _text(self, step: Step, value: ir.Value) -> object:
        """How a body computes a value."""
        own = self.loops(step)
        if value in list(step.body.arguments):
            operand = list(step.body.arguments).index(value)
            if operand >= step.loops.inputs:
                raise _NotOne("a result is read while it is computed")
            loops = step.large(operand)
            places = None if loops is None else tuple(own.index(loop) if loop in own else -1 for loop in loops)
            source = step.sources[operand]
            return (step.op.operands[operand] if source is None else source, places)
        op = defining_op(value)
        if op is None:
            return value
        if op.name == "arith.constant":
            return str(op)
        if op.name == "linalg.index":
            loop = ir.IntegerAttr(op.attributes["dim"]).value
            return ("index", own.index(loop) if loop in own else -1)
        attributes = tuple(f"{name}={op.attributes[name]}" for name in op.attributes)
        return (op.name, str(op.results[0].type), attributes, *(self._text(step, operand) for operand in op.operands))


def _is_exponential(step: Step, rows: Rows) -> bool:
    """exp(score - greatest score)."""
    by_argument = dict(zip(step.body.arguments, step.sources, strict=False))
    op = defining_op(step.yielded)
    difference = defining_op(op.operands[0]) if op is not None and op.name == "math.exp" else None
    if difference is None or difference.name != "arith.subf" or not step.is_elementwise:
        return False
    score, highest = difference.operands
    return by_argument.get(highest) == rows.highest and rows.is_score(step, score)


def _is_all_masked(step: Step, rows: Rows) -> bool:
    """Whether a step says of each row whether all of its scores are -inf."""
    out = step.body.arguments[len(step.body.arguments) - 1]
    both = defining_op(step.yielded)
    if sum(step.loops.reductions) != 1 or both is None or both.name != "arith.andi" or out not in list(both.operands):
        return False
    (compare,) = [defining_op(one) for one in both.operands if one != out] or [None]
    if compare is None or compare.name != "arith.cmpf" or ir.IntegerAttr(compare.attributes["predicate"]).value != 1:
        return False
    values = [one for one in compare.operands if not _is_number(one, float("-inf"))]
    starts = None if step.start is None else defining_op(step.start)
    is_true = starts is not None and starts.name == "arith.constant" and str(starts.attributes["value"]) == "true"
    if not is_true or len(values) != 1:
        return False
    return rows.is_score(step, values[0]) or rows.is_score(step, _before_widening(values[0]))


def _is_division(step: Step, exponential: Step, total: Step, every: list[Step]) -> bool:
    """exponential / total; 0 where every score is -inf; rounded to fewer bits, maybe."""
    value = step.yielded
    op = defining_op(value)
    if op is not None and op.name == "arith.truncf":
        op = defining_op(op.operands[0])
    by_argument = dict(zip(step.body.arguments, step.sources, strict=False))
    if op is not None and op.name == "arith.select":
        condition, zero, other = op.operands
        if not every or by_argument.get(condition) != every[0] or not _is_number(zero, 0.0):
            return False
        op = defining_op(other)
    elif every:
        return False
    if op is None or op.name != "arith.divf":
        return False
    known = {"arith.truncf", "arith.select", "arith.divf", "arith.extf", "arith.constant"}
    return [by_argument.get(one) for one in op.operands] == [exponential, total] and set(step.names) <= known


def _is_of_rows(step: Step, rows: Rows, key: int, by_rows: set[Step]) -> bool:
    """Whether a step runs over the scores, or folds them along the keys, and reads numbers of rows at their rows."""
    own, output = rows.loops(step), step.loops.inputs
    by_row = [loop for dim, loop in enumerate(own) if dim != key]
    for operand, source in enumerate(step.sources):
        if source is None or not _depends(source, rows.scores):
            continue
        if step.large(operand) != (by_row if source in by_rows else own):
            return False
    if step in by_rows:
        return step.large(output) == by_row and step.loops.reductions[own[key]]
    return step.is_elementwise and step.large(output) == own


def _ancestors(step: Step, ends: set[Step]) -> set[Step]:
    """A step and those that it needs, up to `ends`; all but those have to be elementwise."""
    found, pending = set(), [step]
    while pending:
        one = pending.pop()
        if one in found:
            continue
        found.add(one)
        if one in ends:
            continue
        _need(one.is_elementwise, "there are other ops")
        pending += [source for source in one.sources if source is not None]
    return found


def _reads_scores_in_place(step: Step, scores: Step, sizes: tuple[int, ...]) -> bool:
    own = step.large(step.loops.inputs)
    if own is None or not _depends(step, scores):
        return True
    of_scores = [n for n, source in enumerate(step.sources) if source is not None and _depends(source, scores)]
    return tuple(step.loops.sizes[loop] for loop in own) == sizes and all(step.large(n) == own for n in of_scores)


def _depends(step: Step, on: Step) -> bool:
    return step == on or any(source is not None and _depends(source, on) for source in step.sources)


def _moves(step: Step, operand: int, loop: int) -> bool:
    return any(coefficient(one, loop) != 0 for one in step.loops.maps[operand].results)


def _sides(scores: Step, key: int, sizes: tuple[int, ...]) -> tuple[int, int, int]:
    """(which operand has the queries, which one the keys, the dim of the queries or -1)."""
    loops = scores.large(2) or []
    keys = [operand for operand in range(2) if _moves(scores, operand, loops[key])]
    _need(len(keys) == 1, "both operands of the scores move along the keys")
    queries = 1 - keys[0]
    own = [
        dim
        for dim in range(len(sizes))
        if dim != key and _moves(scores, queries, loops[dim]) and not _moves(scores, keys[0], loops[dim])
    ]
    return queries, keys[0], own[-1] if own else -1


def _values(weighted: Step, weights: Step, key: int, query: int) -> tuple[int, int]:
    """(which operand of the second product has the values, its loop along a value)."""
    of_weights = weighted.sources.index(weights)
    loops = weighted.large(of_weights)
    _need(loops is not None, "weights are not read one by one")
    assert loops is not None
    values = 1 - of_weights
    rest = [loop for loop, size in enumerate(weighted.loops.sizes) if loop not in loops and size != 1]
    _need(len(rest) == 1 and weighted.loops.reductions[loops[key]], "the sum is not over the keys")
    _need(query < 0 or not _moves(weighted, values, loops[query]), "values differ between queries")
    return values, rest[0]


def _all_private(function: ir.Operation, steps: Sequence[Step]) -> bool:
    """Whether nothing but the kernel sees the results of some steps."""
    returned = list(function.regions[0].blocks[0].operations)[-1].operation.operands
    results = [step.result for step in steps]
    on_buffers = [value for value in results if isinstance(value.type, ir.MemRefType)]
    owners = [defining_op(base(value)) for value in on_buffers]
    return not any(value in list(returned) for value in results) and all(
        owner is not None and owner.name in ("memref.alloc", "memref.alloca") for owner in owners
    )
