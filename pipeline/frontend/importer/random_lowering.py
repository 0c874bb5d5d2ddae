"""`pipeline.random` on its way from torch to linalg: Philox4x32-10, elementwise, keyed by a seed that each call brings.

torch.operator "torch.pipeline.random"(like) → pipeline.random on torch's tensors, past torch-mlir's passes
                                             → linalg.generic { philox(key: seed, counter: place, number, round) }

Each element is a function of the call's seed, its own place, the number of the op in the program and the round of the
loops around it, so that it depends neither on threads nor on vectors, and may be computed twice. See Salmon et al.,
"Parallel random numbers: as easy as 1, 2, 3" (2011); torch's generator on GPUs is the same.
"""

from __future__ import annotations

import itertools
from functools import reduce

from pipeline.frontend.importer.own_ops import imported, lower_ops, take_over
from pipeline.ir.attributes import SEED
from pipeline.ir.constants import as_index
from pipeline.ir.rewriting import add_argument, before, build_generic, iterator_types, replace
from pipeline.mlir import arith, function, ir, linalg, tensor, walk

_LOOP = "torch.prim.Loop"
_RANDOM = "pipeline.random"

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
_LOW = 2**32 - 1

#: Where the op's number lies in the counter, above the place of the element.
_NUMBER_SHIFT = 40

#: Nested loops: the round of the outer one times this, plus that of the inner one. An odd number with mixed bits.
_NESTING = 0x9E3779B97F4A7C15


def take_over_random(module: ir.Module) -> None:
    """Makes imported calls of `pipeline.random` ops that torch's passes leave alone."""
    for call in imported(module, _RANDOM):
        take_over(call, _RANDOM, [call.operands[0]])


def lower_random(module: ir.Module) -> None:
    """pipeline.random(like) → linalg.generic on builtin tensors, between torch-mlir's own conversions.

    @main(...) => @main(..., %seed: i64), where there are any; see `seed_marks`.
    """
    ops = walk(module, _RANDOM)
    if not ops:
        return
    for loop in walk(module, _LOOP):
        if walk(loop, _RANDOM):
            _count_rounds(loop)
    with module.context:
        seed = add_argument(function(module, "main"), _i64())
    numbers = itertools.count()
    lower_ops(ops, lambda op, like: _generate(like, seed, _round(op), next(numbers)))


def seed_marks(main: ir.Operation, count: int) -> list[ir.Attribute]:
    """The mark of the seed, if @main has that beside its `count` other arguments."""
    has_seed = len(main.regions[0].blocks[0].arguments) > count
    return [ir.DictAttr.get({SEED: ir.UnitAttr.get()})] if has_seed else []


def _round(op: ir.Operation) -> ir.Value:
    """The number of the round of the loops around an op, which have been counted; 0 outside of loops."""
    rounds: list[ir.Value] = []
    parent = op.parent
    while parent is not None and parent.operation.name != "builtin.module":
        if parent.operation.name == _LOOP:
            count = parent.operation.regions[0].blocks[0].arguments[-1]
            rounds.insert(0, ir.Operation.create("torch_c.to_i64", results=[_i64()], operands=[count]).result)
        parent = parent.operation.parent
    if not rounds:
        return _constant(0)
    return reduce(lambda outer, inner: arith.addi(arith.muli(outer, _constant(_NESTING)), inner), rounds)


def _count_rounds(loop: ir.Operation) -> None:
    """prim.Loop(init) { yield x } → prim.Loop(init, 0) { yield x, count + 1 }: torch-mlir's own count is for ranges."""
    block = loop.regions[0].blocks[0]
    end = block.operations[len(block.operations) - 1].operation
    torch_int = block.arguments[0].type
    with before(loop):
        zero, one = (_torch_int(value, torch_int) for value in (0, 1))
        kinds = [*(result.type for result in loop.results), torch_int]
        counted = ir.Operation.create(_LOOP, results=kinds, operands=[*loop.operands, zero], regions=1)
    count = block.add_argument(torch_int, loop.location)
    with before(end):
        following = ir.Operation.create("torch.aten.add.int", results=[torch_int], operands=[count, one]).result
        ir.Operation.create(end.name, operands=[*end.operands, following])
    end.erase()
    block.append_to(counted.regions[0])
    replace(loop, list(counted.results)[:-1])


def _torch_int(value: int, kind: ir.Type) -> ir.Value:
    attributes = {"value": ir.IntegerAttr.get(_i64(), value)}
    return ir.Operation.create("torch.constant.int", results=[kind], attributes=attributes).result


def _generate(like: ir.Value, key: ir.Value, turn: ir.Value, number: int) -> ir.Value:
    """A tensor of random numbers in the shape and dtype of `like`."""
    kind = ir.RankedTensorType(like.type)
    dims = [tensor.DimOp(like, as_index(dim)).result if kind.is_dynamic_dim(dim) else None for dim in range(kind.rank)]
    sizes = [_constant(kind.get_dim_size(dim)) if size is None else _to_i64(size) for dim, size in enumerate(dims)]
    empty = tensor.EmptyOp(
        [kind.get_dim_size(dim) if size is None else size for dim, size in enumerate(dims)], kind.element_type
    ).result

    def body(_: object) -> list[ir.Value]:
        place = _constant(0)
        for dim, size in enumerate(sizes):
            place = arith.addi(arith.muli(place, size), _to_i64(linalg.IndexOp(dim).result))
        counter = arith.ori(place, _constant(number << _NUMBER_SHIFT))
        return [_convert(*_philox(_words(counter) + _words(turn), _words(key)), kind.element_type)]

    generic = build_generic(
        [], [empty], [ir.AffineMap.get_identity(kind.rank)], iterator_types([False] * kind.rank), body
    )
    return generic.results[0]


def _philox(counter: list[ir.Value], key: list[ir.Value]) -> tuple[ir.Value, ir.Value]:
    """Two of the four words of a block, each in the low half of an i64."""
    for number in range(_ROUNDS):
        left, right = (arith.muli(counter[2 * half], _constant(factor)) for half, factor in enumerate(_MULTIPLIERS))
        subkeys = [
            word if not number else _low(arith.addi(word, _constant(number * step & _LOW)))
            for word, step in zip(key, _WEYL, strict=True)
        ]
        counter = [
            arith.xori(arith.xori(_high(right), counter[1]), subkeys[0]),
            _low(right),
            arith.xori(arith.xori(_high(left), counter[3]), subkeys[1]),
            _low(left),
        ]
    return counter[0], counter[1]


def _convert(first: ir.Value, second: ir.Value, element: ir.Type) -> ir.Value:
    """64 random bits as an integer, or as many of them as a float has in its mantissa as a number in [0, 1)."""
    if str(element) == "f32":
        mantissa = arith.trunci(ir.IntegerType.get_signless(32), arith.shrui(first, _constant(8)))
        return arith.mulf(arith.sitofp(element, mantissa), arith.ConstantOp(element, 2.0**-24).result)
    bits = arith.ori(arith.shli(second, _constant(32)), first)
    if str(element) == "f64":
        mantissa = arith.shrui(bits, _constant(11))
        return arith.mulf(arith.sitofp(element, mantissa), arith.ConstantOp(element, 2.0**-53).result)
    return bits


def _words(value: ir.Value) -> list[ir.Value]:
    return [_low(value), _high(value)]


def _low(value: ir.Value) -> ir.Value:
    return arith.andi(value, _constant(_LOW))


def _high(value: ir.Value) -> ir.Value:
    return arith.shrui(value, _constant(32))


def _to_i64(index: ir.Value) -> ir.Value:
    return arith.index_cast(_i64(), index)


def _constant(value: int) -> ir.Value:
    signed = value - 2**64 if value >= 2**63 else value
    return arith.ConstantOp(_i64(), signed).result


def _i64() -> ir.Type:
    return ir.IntegerType.get_signless(64)
