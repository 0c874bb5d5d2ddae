"""fuse-elementwise: elementwise producers are computed where they are used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import ClassVar

from pipeline.analysis.body_cost import CHEAP_BODY, CHEAP_TO_REPEAT, body_cost
from pipeline.dialects.fusion import behind_barriers, stops_fusion
from pipeline.fusion_rules import reasons
from pipeline.fusion_rules.reasons import Refusal
from pipeline.fusion_rules.rules import FusionRules, load_rules
from pipeline.ir.indexing_maps import bounded_loops, is_permutation, moves
from pipeline.ir.linalg_op import LinalgOp, moves_rows, reads_input_again, structured
from pipeline.ir.rewriting import before, build_generic, copy_attributes, copy_body, is_unused, replace
from pipeline.mlir import affine, defining_op, ir, linalg
from pipeline.passes.fusion.elementwise_legality import why_not_join
from pipeline.passes.fusion.narrow_elements import is_sum_of_its_own, spares_wide_elements
from pipeline.passmanager.patterns import PatternPass, pattern

#: So many rows read the lines of a matrix, each by itself, in less time than it takes to transpose it. Narrow elements,
#: whose products are dot products of what is packed instead, have fewer.
_FEW_ROWS, _FEW_NARROW_ROWS, _WIDE = 4, 2, 32


@dataclass(frozen=True)
class FuseElementwise(PatternPass):
    """Compute an elementwise linalg op inside of the linalg.generic that uses its result.

    A producer moves into its one consumer, an elementwise op or a reduction in the same block, if every element is then
    still computed once. What only moves or converts elements moves into every consumer, unless it makes them narrower
    where nothing else reads the wide ones; what costs next to nothing may be computed several times in a broadcast, but
    from one tensor alone where the consumer reads at computed places, and in both a sum and another op, if it reads
    nothing of that size. Only what moves whole rows goes into a contraction, a convolution or a pool, which read an
    input again and again. What makes narrow elements of a sum stays beside it, if the consumer reads another sum.
    Nothing moves that the table of fusion rules refuses, that a barrier is in front of, or that goes by another
    target's table.
    """

    name: ClassVar[str] = "fuse-elementwise"
    anchor: ClassVar[str] = "func.func"

    rules: str = field(default="cpu", metadata={"help": "the table of fusion rules: a target's name or a YAML file"})

    def analyze(self, op: ir.Operation) -> FusionRules:
        """The table of fusion rules."""
        return load_rules(self.rules)

    @pattern("linalg.generic")
    def fuse_free(self, consumer: ir.Operation, rules: FusionRules) -> bool:
        """consumer(producer(x))   ->   consumer'(x), where the producer costs nothing"""
        return self._fuse_into(consumer, 0, rules)[1]

    @pattern("linalg.generic")
    def fuse(self, consumer: ir.Operation, rules: FusionRules) -> bool:
        """consumer(producer(x))   ->   consumer'(x)"""
        return self._fuse_into(consumer, None, rules)[1]

    @pattern("linalg.generic")
    def explain(self, consumer: ir.Operation, rules: FusionRules) -> bool:
        """consumer(producer(x))   ->   consumer(producer(x)), with a remark that says why"""
        consumer, fused = self._fuse_into(consumer, None, rules)  # users of a producer may have become fewer
        view = structured(consumer)
        assert view is not None
        for operand, producer in _producers(view, {}):
            refusal = _why_not(view, operand, producer, rules)
            assert refusal is not None
            text = f"does not compute its operand {operand}, {producer.op.name}, itself: {refusal.detail}"
            self.missed(consumer, text, refusal.reason, producer.op)
        return fused

    def _fuse_into(self, consumer: ir.Operation, most: int | None, rules: FusionRules) -> tuple[ir.Operation, bool]:
        """Fuses producers of `consumer` that cost `most` or less, then theirs, until none is left.

        Returns what has become of it, and whether one was fused.

        Consumers come in program order, because what an op costs as a producer is what it has come to after its own
        fusions.
        """
        fused, known = False, dict[ir.Operation, LinalgOp | None]()
        while True:
            view = structured(consumer)
            assert view is not None
            found = next(
                (
                    (operand, producer)
                    for operand, producer in _producers(view, known)
                    if (most is None or body_cost(producer) <= most)
                    and _why_not(view, operand, producer, rules) is None
                ),
                None,
            )
            if found is None:
                return consumer, fused
            operand, producer = found
            self.passed(consumer, f"computes its operand {operand}, {producer.op.name}, itself", producer.op)
            del known[producer.op]  # which may be gone now, and another op in its place
            consumer, fused = _fuse(view, operand, producer), True


def _producers(consumer: LinalgOp, known: dict[ir.Operation, LinalgOp | None]) -> Iterator[tuple[int, LinalgOp]]:
    """The ops that might be computed in the consumer, each with the first input that is its result.

    `known` has the views of ops that were asked for before, and learns the others.
    """
    met: set[ir.Operation] = set()
    for operand in range(consumer.inputs):
        op = behind_barriers(defining_op(consumer.op.operands[operand]))
        if op is None or op in met:
            continue
        met.add(op)
        if op not in known:
            known[op] = structured(op)
        producer = known[op]
        if producer is not None:
            yield operand, producer


def _why_not(consumer: LinalgOp, operand: int, producer: LinalgOp, rules: FusionRules) -> Refusal | None:
    """Why the producer is not computed in the consumer; None if it can be."""
    if stops_fusion(consumer.op.operands[operand]):
        return Refusal(reasons.BARRIER, "fusion stops behind it")
    if len(producer.op.results) != 1 or not producer.is_elementwise:
        return Refusal(reasons.NOT_ELEMENTWISE, "it is not elementwise with one result")
    if producer.op.block != consumer.op.block:
        return Refusal(reasons.ANOTHER_BLOCK, "it is in another block")
    if reads_input_again(consumer) and not moves_rows(producer) and not _gives_lines(producer, consumer, operand):
        return Refusal(reasons.READS_AGAIN, "the consumer reads its input again and again")
    if is_sum_of_its_own(producer, consumer):
        return Refusal(reasons.CLAIMED, "it makes narrow elements of a sum, and the consumer reads another sum")
    cost = body_cost(producer)
    same = _same_reads(consumer, operand)
    uses = list(producer.op.results[0].uses)
    users = {use.owner.operation for use in uses}
    if len(users) > 1 and (cost > 0 or spares_wide_elements(producer)) and not _is_summed_and_cheap(producer, users):
        return Refusal(reasons.MULTI_USE, f"it has {len(users)} users")
    if sum(use.owner.operation == consumer.op for use in uses) > len(same) and cost > 0:
        return Refusal(reasons.SEVERAL_READS, "the consumer reads it in several ways")
    if not consumer.reads_once(operand) and (cost > CHEAP_BODY or _takes_more_loads(consumer, producer)):
        return Refusal(reasons.COST, "it would be computed several times for each element")
    maps = _Fused.of(consumer, operand, producer).maps
    if bounded_loops(maps) != set(range(consumer.loops)):
        return Refusal(reasons.LOOP_BOUND, "it alone says how often a loop runs")
    return why_not_join(rules, producer.op, consumer.op, len(maps))


def _takes_more_loads(consumer: LinalgOp, producer: LinalgOp) -> bool:
    """Whether a consumer that reads at computed places would read several elements in the place of one.

    Where an element of a table takes a load for each lane, what all rows share, as the weights of an image's channels,
    is not computed for each row from its factors.
    """
    gathers = any(op.name == "tensor.extract" for op in consumer.body_ops)
    loops = {loop for loop in range(producer.loops) if producer.sizes[loop] != 1}
    return gathers and sum(loops <= set(producer.loops_read(number)) for number in range(producer.inputs)) > 1


def _is_summed_and_cheap(producer: LinalgOp, users: set[ir.Operation]) -> bool:
    """Whether to compute something twice takes less time than to store it: nothing as large is read for it.

    One of its two users adds its elements up, as those of the gradient of a loss, which is zero but for one class.
    """
    views = [structured(user) for user in users]
    if len(users) > 2 or not any(view is not None and any(view.reductions) for view in views):
        return False
    long = {loop for loop in range(producer.loops) if producer.sizes[loop] != 1}
    reads = (set(producer.loops_read(number)) for number in range(producer.inputs))
    return body_cost(producer) <= CHEAP_TO_REPEAT and all(not long <= loops for loops in reads)


def _gives_lines(producer: LinalgOp, consumer: LinalgOp, operand: int) -> bool:
    """Whether a reduction reads each element once, or a few times, along the lines of what the producer transposes.

    y[0, n] = sum(x[0, k] * transposed(w)[k, n])   ->   y[0, n] = sum(x[0, k] * w[n, k])
    y[m, 0] = sum(transposed(a)[m, k] * x[k, 0])   ->   y[m, 0] = sum(a[k, m] * x[k, 0])

    Vectors run along a sum, or along the result; dims of size 1 are in nobody's way, see drop-unit-dims. A few rows
    that add up along the same lines take less time than to write these down in another order.
    """
    if producer.inputs != 1 or producer.body_ops or producer.yielded != [producer.body.arguments[0]]:
        return False
    read = consumer.loops_read(operand)
    loops = [loop for loop in range(consumer.loops) if consumer.sizes[loop] != 1]
    few = _FEW_NARROW_ROWS if _width(producer) < _WIDE else _FEW_ROWS
    times = prod(consumer.sizes[loop] or few + 1 for loop in loops if loop not in read)
    if times > few or not is_permutation(producer.maps[0]):
        return False
    into = _loops_of_producer(consumer.maps[operand], producer)
    operands = zip(consumer.maps, consumer.operands, strict=True)
    maps = [_without_units(indexing, value) for indexing, value in operands]
    innermost = _without_units(_compose(producer.maps[0], into), producer.operands[0]).results
    line = next((loop for loop in loops if innermost and innermost[-1] == ir.AffineDimExpr.get(loop)), None)
    if line is None or not all(
        moves(indexing, line) in ("fixed", "unit") for number, indexing in enumerate(maps) if number != operand
    ):
        return False
    return consumer.reductions[line] or (times == 1 and moves(maps[-1], line) == "unit")


def _width(producer: LinalgOp) -> int:
    """The bits of an element of what an op computes."""
    return int(getattr(ir.RankedTensorType(producer.op.results[0].type).element_type, "width", _WIDE))


def _without_units(indexing: ir.AffineMap, value: ir.Value) -> ir.AffineMap:
    """A map without its last results, as far as these dims have a size of 1."""
    kind, kept = ir.RankedTensorType(value.type), len(indexing.results)
    while kept and not kind.is_dynamic_dim(kept - 1) and kind.get_dim_size(kept - 1) == 1:
        kept -= 1
    return ir.AffineMap.get(indexing.n_dims, 0, list(indexing.results)[:kept])


def _same_reads(consumer: LinalgOp, operand: int) -> list[int]:
    """The inputs that read the same elements of the same tensor as `operand` does, itself among them."""
    value, indexing = consumer.op.operands[operand], consumer.maps[operand]
    return [n for n in range(consumer.inputs) if consumer.op.operands[n] == value and consumer.maps[n] == indexing]


@dataclass(frozen=True)
class _Fused:
    """What a fused op reads: the consumer's inputs but the fused one, and in between what the producer reads.

    Attributes:
        ahead, behind: the numbers of the consumer's inputs that come first, and last.
        into: goes from the consumer's loops to the producer's.
        maps: the maps of all that it reads, and of its outputs.
    """

    ahead: list[int]
    behind: list[int]
    into: ir.AffineMap
    maps: list[ir.AffineMap]

    @staticmethod
    def of(consumer: LinalgOp, operand: int, producer: LinalgOp) -> _Fused:
        """For a producer whose result is read by `operand` of the consumer.

        One input takes the place of the operand: which inputs are the factors of a product goes by their places.
        """
        same = _same_reads(consumer, operand)
        others = [number for number in range(consumer.inputs) if number not in same]
        ahead = [number for number in others if number < operand or producer.inputs > 1]
        behind = others[len(ahead) :]
        into = _loops_of_producer(consumer.maps[operand], producer)
        composed = [_compose(indexing, into) for indexing in producer.maps[: producer.inputs]]
        maps = [
            *(consumer.maps[number] for number in ahead),
            *composed,
            *(consumer.maps[number] for number in (*behind, *range(consumer.inputs, len(consumer.maps)))),
        ]
        return _Fused(ahead, behind, into, maps)


def _fuse(consumer: LinalgOp, operand: int, producer: LinalgOp) -> ir.Operation:
    """consumer(.., producer(a, b), ..) -> consumer'(.., a, b, ..); erases the producer if nothing else needs it."""
    fused, same = _Fused.of(consumer, operand, producer), _same_reads(consumer, operand)
    first, last = len(fused.ahead), len(fused.ahead) + producer.inputs
    inputs = [consumer.op.operands[number] for number in fused.ahead]
    inputs += list(producer.op.operands)[: producer.inputs]
    inputs += [consumer.op.operands[number] for number in fused.behind]
    outputs = list(consumer.op.operands)[consumer.inputs :]

    def body(elements: Sequence[ir.BlockArgument]) -> list[ir.Value]:
        value = _inline_copy(producer, elements[first:last], fused.into)
        known: dict[int, ir.Value] = dict(zip(fused.ahead, elements, strict=False))
        known |= dict(zip(fused.behind, elements[last:], strict=False))
        known |= dict.fromkeys(same, value)
        of_outputs = elements[len(inputs) :]
        return _move_body(consumer.body, [*(known[number] for number in range(consumer.inputs)), *of_outputs])

    with before(consumer.op):
        generic = build_generic(inputs, outputs, fused.maps, list(consumer.op.attributes["iterator_types"]), body)
    copy_attributes(consumer.op, generic)
    replace(consumer.op, list(generic.results))
    if is_unused(producer.op.results[0]):
        producer.op.erase()
    return generic


def _loops_of_producer(indexing: ir.AffineMap, producer: LinalgOp) -> ir.AffineMap:
    """From the consumer's loops to the producer's: the inverse of how it writes after how the consumer reads."""
    written = [ir.AffineDimExpr(expression).position for expression in producer.maps[producer.inputs].results]
    results = [indexing.results[written.index(loop)] for loop in range(producer.loops)]
    return ir.AffineMap.get(indexing.n_dims, 0, results)


def _compose(indexing: ir.AffineMap, into: ir.AffineMap) -> ir.AffineMap:
    return ir.AffineMap.get(into.n_dims, 0, [expression.compose(into) for expression in indexing.results])


def _inline_copy(producer: LinalgOp, inputs: Sequence[ir.Value], into: ir.AffineMap) -> ir.Value:
    """The producer's element, computed at the insertion point by a copy of its body."""
    unread = list(producer.body.arguments)[len(inputs) :]
    (value,) = copy_body(producer, [*inputs, *unread], lambda loop: _loop_index(into.results[loop], into.n_dims))
    return value


def _move_body(body: ir.Block, arguments: Sequence[ir.Value]) -> list[ir.Value]:
    """Moves the ops of `body` to the end of the block that is being built; returns what its terminator took."""
    target = ir.InsertionPoint.current.block
    for argument, value in zip(body.arguments, arguments, strict=True):
        argument.replace_all_uses_with(value)
    *ops, terminator = [op.operation for op in body.operations]
    for op in ops:
        target.append(op)
    return list(terminator.operands)


def _loop_index(expression: ir.AffineExpr, loops: int) -> ir.Value:
    """The value of an expression of the loops of the linalg op that is being built."""
    if isinstance(expression, ir.AffineDimExpr):
        return linalg.IndexOp(ir.AffineDimExpr(expression).position).result
    indices = [linalg.IndexOp(dim).result for dim in range(loops)]
    return affine.AffineApplyOp(ir.AffineMap.get(loops, 0, [expression]), indices).result
