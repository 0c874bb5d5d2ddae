"""Attention, found in the ops of a kernel: softmax over the keys of the scores of queries, times the values.

Found on tensors and on buffers alike. What is elementwise in front of the products, between the scores and the softmax
and behind everything may be anything; `Attention` says how to get at a single element of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.ir.indexing_maps import coefficient
from pipeline.ir.matchers import base
from pipeline.mlir import defining_op, ir
from pipeline.passes.gpu.flash_attention.causal_mask import limit_of_keys
from pipeline.passes.gpu.flash_attention.op_graph import GenericStep, NotOne, depends, is_product, need, read_steps
from pipeline.passes.gpu.flash_attention.softmax_pattern import (
    SoftmaxOperand,
    folded,
    is_all_masked,
    is_division,
    is_exponential,
    is_fold,
    is_of_rows,
)


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

    scores: GenericStep
    of_queries: int
    of_keys: int
    highest: GenericStep
    key: int
    query: int
    sizes: tuple[int, ...]
    loops_of_scores: list[int]
    width: int
    weighted: GenericStep
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


def read_attention(function: ir.Operation) -> Attention | str:
    """The attention that a kernel is, and nothing else; or why it is none."""
    try:
        return _read(function)
    except NotOne as reason:
        return str(reason)


def _read(function: ir.Operation) -> Attention:
    steps = read_steps([op.operation for op in function.regions[0].blocks[0].operations])
    products = [step for step in steps if is_product(step)]
    need(len(products) == 2, "there are not two products")
    scores, weighted = products
    softmax = _softmax(steps, scores, weighted)
    between = _between(softmax, scores)
    queries, keys, query = _sides(scores, softmax.key, softmax.rows.sizes)
    of_values, value_loop = _values(weighted, softmax.weights, softmax.key, query)
    used = {scores, weighted, *softmax.steps, *between}
    for product, operand in ((scores, queries), (scores, keys), (weighted, of_values)):
        source = product.sources[operand]
        used |= set() if source is None else _ancestors(source, set())
    _check_what_is_behind(function, steps, used, weighted)
    elements = {str(step.element) for step in (softmax.exponential, softmax.highest, scores)}
    need(elements == {"f32"}, "no softmax in float32")
    width = next(size for size, reduces in zip(scores.view.sizes, scores.view.reductions, strict=True) if reduces)
    along = softmax.rows.loops(softmax.highest)
    return Attention(
        scores=scores,
        of_queries=queries,
        of_keys=keys,
        highest=softmax.highest,
        key=softmax.key,
        query=query,
        sizes=softmax.rows.sizes,
        loops_of_scores=along,
        width=width or 0,
        weighted=weighted,
        of_values=of_values,
        value_loop=value_loop,
        value_width=weighted.view.sizes[value_loop] or 0,
        zero_if_masked=bool(softmax.every),
        limit=limit_of_keys(softmax.highest, softmax.rows.score, along, softmax.key, query),
    )


@dataclass(frozen=True)
class _Softmax:
    """The steps of a softmax: the maximum of each row, exp of what is less by it, their sum, the quotients.

    Attributes:
        rows: what it is taken of.
        every: what tells whether all scores of a row are -inf, if something does.
        key: the dim of the scores that it goes along.
    """

    rows: SoftmaxOperand
    highest: GenericStep
    exponential: GenericStep
    total: GenericStep
    weights: GenericStep
    every: list[GenericStep]
    key: int

    @property
    def steps(self) -> tuple[GenericStep, ...]:
        """All of them."""
        return self.highest, self.exponential, self.total, self.weights, *self.every


def _softmax(steps: Sequence[GenericStep], scores: GenericStep, weighted: GenericStep) -> _Softmax:
    """The softmax between two products; each row is read as it is written."""
    highest = _only([s for s in steps if is_fold(s, "arith.maximumf", float("-inf"))], "no maximum of each row")
    total = _only(
        [s for s in steps if s.names == ["arith.addf"] and is_fold(s, "arith.addf", 0.0)], "no sum of each row"
    )
    sizes = tuple(size for size in ir.ShapedType(scores.result.type).shape if size != 1)
    rows = SoftmaxOperand(scores, sizes, highest, folded(highest))
    reduced = [dim for dim, loop in enumerate(rows.loops(highest)) if highest.view.reductions[loop]]
    need(len(reduced) == 1, "there is one key only")
    exponential = _only([s for s in steps if is_exponential(s, rows)], "no exp of scores")
    every = [s for s in steps if is_all_masked(s, rows)]
    need(total.sources == (exponential,) and len(every) <= 1, "the sum is not that of exponentials")
    weights = next((source for source in weighted.sources if source is not None and total in source.sources), None)
    need(weights is not None, "the weights are not divided by their sum")
    assert weights is not None
    need(is_division(weights, exponential, total, every), "the weights are not divided by their sum")
    softmax = _Softmax(rows, highest, exponential, total, weights, every, reduced[0])
    for step in softmax.steps:
        need(is_of_rows(step, rows, softmax.key, {highest, total, *every}), "rows are not read as they are written")
    return softmax


def _between(softmax: _Softmax, scores: GenericStep) -> set[GenericStep]:
    """What computes the operand of the softmax of the scores, one by one; the scores among it."""
    found: set[GenericStep] = set()
    for step in (*softmax.highest.sources, *softmax.exponential.sources):
        if step is not None and step != softmax.highest:
            found |= _ancestors(step, {scores})
    need(scores in found, "the softmax is not that of the product")
    for step in found - {scores}:
        need(_reads_scores_in_place(step, scores, softmax.rows.sizes), "scores are not computed one by one")
    return found


def _check_what_is_behind(
    function: ir.Operation, steps: Sequence[GenericStep], used: set[GenericStep], weighted: GenericStep
) -> None:
    """All other steps are elementwise ops on the result, and nobody sees what is computed on the way."""
    behind = [step for step in steps if step not in used]
    need(all(step.is_elementwise and depends(step, weighted) for step in behind), "there are other ops")
    inner = [step for step in steps if step not in behind and (step != weighted or behind)]
    need(_all_private(function, inner), "more is returned")


def _only(found: list[GenericStep], reason: str) -> GenericStep:
    need(len(found) == 1, reason)
    return found[0]


def _ancestors(step: GenericStep, ends: set[GenericStep]) -> set[GenericStep]:
    """A step and those that it needs, up to `ends`; all but those have to be elementwise."""
    found, pending = set(), [step]
    while pending:
        ancestor = pending.pop()
        if ancestor in found:
            continue
        found.add(ancestor)
        if ancestor in ends:
            continue
        need(ancestor.is_elementwise, "there are other ops")
        pending += [source for source in ancestor.sources if source is not None]
    return found


def _reads_scores_in_place(step: GenericStep, scores: GenericStep, sizes: tuple[int, ...]) -> bool:
    own = step.large(step.view.inputs)
    if own is None or not depends(step, scores):
        return True
    of_scores = [n for n, source in enumerate(step.sources) if source is not None and depends(source, scores)]
    return tuple(step.view.sizes[loop] for loop in own) == sizes and all(step.large(n) == own for n in of_scores)


def _moves(step: GenericStep, operand: int, loop: int) -> bool:
    return any(coefficient(expression, loop) != 0 for expression in step.view.maps[operand].results)


def _sides(scores: GenericStep, key: int, sizes: tuple[int, ...]) -> tuple[int, int, int]:
    """(which operand has the queries, which one the keys, the dim of the queries or -1)."""
    loops = scores.large(2) or []
    keys = [operand for operand in range(2) if _moves(scores, operand, loops[key])]
    need(len(keys) == 1, "both operands of the scores move along the keys")
    queries = 1 - keys[0]
    own = [
        dim
        for dim in range(len(sizes))
        if dim != key and _moves(scores, queries, loops[dim]) and not _moves(scores, keys[0], loops[dim])
    ]
    return queries, keys[0], own[-1] if own else -1


def _values(weighted: GenericStep, weights: GenericStep, key: int, query: int) -> tuple[int, int]:
    """(which operand of the second product has the values, its loop along a value)."""
    of_weights = weighted.sources.index(weights)
    loops = weighted.large(of_weights)
    need(loops is not None, "weights are not read one by one")
    assert loops is not None
    values = 1 - of_weights
    rest = [loop for loop, size in enumerate(weighted.view.sizes) if loop not in loops and size != 1]
    need(len(rest) == 1 and weighted.view.reductions[loops[key]], "the sum is not over the keys")
    need(query < 0 or not _moves(weighted, values, loops[query]), "values differ between queries")
    return values, rest[0]


def _all_private(function: ir.Operation, steps: Sequence[GenericStep]) -> bool:
    """Whether nothing but the kernel sees the results of some steps."""
    returned = list(function.regions[0].blocks[0].operations)[-1].operation.operands
    results = [step.result for step in steps]
    on_buffers = [value for value in results if isinstance(value.type, ir.MemRefType)]
    owners = [defining_op(base(value)) for value in on_buffers]
    return not any(value in list(returned) for value in results) and all(
        owner is not None and owner.name in ("memref.alloc", "memref.alloca") for owner in owners
    )
