"""What passes share for rewriting: matching producers, building ops where others stood, moving ops over region borders.

Questions that need no rewriting, like what a value is defined by, are in `pipeline.mlir`.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

from pipeline.ir.attributes import WINOGRAD
from pipeline.ir.constants import as_index
from pipeline.ir.element_types import element_type
from pipeline.ir.indexing_maps import bounded_loops
from pipeline.ir.linalg_op import LinalgOp, any_structured, structured
from pipeline.ir.reshapes import ALL_RESHAPES
from pipeline.mlir import arith, clone, defining_op, ir, linalg, scf, symbol_name, tensor, terminator, walk

#: Dialects whose ops neither touch memory nor trap in a way that a program may rely on.
_PURE_DIALECTS = ("arith", "math", "complex", "index")


@contextlib.contextmanager
def before(op: ir.Operation) -> Iterator[None]:
    """Builds ops in front of `op`, with its location."""
    with op.location, ir.InsertionPoint(op):
        yield


@contextlib.contextmanager
def behind(value: ir.Value) -> Iterator[None]:
    """Builds ops right behind what makes a value: outside of a loop that only reads it."""
    op = defining_op(value)
    place = ir.InsertionPoint.at_block_begin(value.owner) if op is None else ir.InsertionPoint.after(op)
    with ir.Location.unknown() if op is None else op.location, place:
        yield


def replace(op: ir.Operation, values: Sequence[ir.Value]) -> None:
    """Puts `values` in the place of the results of `op`, and erases it."""
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)
    op.erase()


def is_unused(value: ir.Value) -> bool:
    """Whether no op takes `value`."""
    return next(iter(value.uses), None) is None


def unused_name(module: ir.Operation, wanted: str) -> str:
    """The name that is wanted for a new function, with a number behind it if another one has it."""
    taken = {symbol_name(op) for op in walk(module, "func.func")}
    numbered = (f"{wanted}_{number}" for number in itertools.count())
    return next(name for name in itertools.chain([wanted], numbered) if name not in taken)


def is_pure(op: ir.Operation) -> bool:
    """Whether `op` may be dropped when its results are unused."""
    return op.name == "linalg.index" or op.name.partition(".")[0] in _PURE_DIALECTS


def producer_through_reshapes(value: ir.Value) -> tuple[ir.Operation | None, list[ir.Operation]]:
    """The op that computes the elements of `value`, and the reshapes between it and `value`, producer first.

    expand_shape(collapse_shape(producer)) -> producer, [collapse_shape, expand_shape]

    The producer is None where the elements come from a block argument.
    """
    producer = defining_op(value)
    if producer is None or producer.name not in ALL_RESHAPES:
        return producer, []
    origin, reshapes = producer_through_reshapes(producer.operands[0])
    return origin, [*reshapes, producer]


def build_generic(
    inputs: Sequence[ir.Value],
    outputs: Sequence[ir.Value],
    maps: Sequence[ir.AffineMap],
    iterators: Sequence[ir.Attribute],
    body: Callable[[Sequence[ir.BlockArgument]], Sequence[ir.Value]],
) -> ir.Operation:
    """A linalg.generic on tensors or buffers at the insertion point.

    Inputs may be numbers, too. `maps` has the indexing map of each input, then of each output. `body` is called at the
    start of the region with an element of each input and output, builds the ops of the region and returns what it
    yields, one for each output. There is a result for each output that is a tensor.
    """
    results = [output.type for output in outputs if isinstance(output.type, ir.RankedTensorType)]
    generic = linalg.GenericOp(
        results,
        list(inputs),
        list(outputs),
        ir.ArrayAttr.get([ir.AffineMapAttr.get(indexing) for indexing in maps]),
        ir.ArrayAttr.get(list(iterators)),
    ).operation
    elements = [element_type(value) for value in (*inputs, *outputs)]
    block = ir.Block.create_at_start(generic.regions[0], elements)
    with ir.InsertionPoint(block):
        linalg.YieldOp(body(block.arguments))
    return generic


def build_elementwise(value: ir.Value, element: ir.Type, compute: Callable[[ir.Value], ir.Value]) -> ir.Value:
    """A tensor of the shape of another one at the insertion point, of whose elements each is computed from one."""
    identity = ir.AffineMap.get_identity(ir.RankedTensorType(value.type).rank)
    made = build_generic(
        [value],
        [empty_like(value, element)],
        [identity, identity],
        iterator_types([False] * identity.n_dims),
        lambda elements: [compute(elements[0])],
    )
    return made.results[0]


def iterator_types(reductions: Iterable[bool]) -> list[ir.Attribute]:
    """What `build_generic` takes for loops that are reductions, or parallel."""
    kinds = ("reduction" if reduces else "parallel" for reduces in reductions)
    return [ir.Attribute.parse(f"#linalg.iterator_type<{kind}>") for kind in kinds]


def empty_like(data: ir.Value, element: ir.Type, permutation: Sequence[int] | None = None) -> ir.Value:
    """A tensor.empty of the shape of `data`, its dims in the order of a permutation."""
    sizes = sizes_of(data)
    return tensor.EmptyOp([sizes[dim] for dim in permutation or range(len(sizes))], element).result


def sizes_of(data: ir.Value) -> list[int | ir.Value]:
    """The sizes of a tensor: numbers where they are known, else indices that are computed at the insertion point."""
    kind = ir.RankedTensorType(data.type)
    return [size_of(data, dim) if kind.is_dynamic_dim(dim) else kind.get_dim_size(dim) for dim in range(kind.rank)]


def size_of(data: ir.Value, dim: int) -> ir.Value:
    """The size of one dim of a tensor, as an index."""
    kind = ir.RankedTensorType(data.type)
    if not kind.is_dynamic_dim(dim):
        return as_index(kind.get_dim_size(dim))
    return tensor.DimOp(data, as_index(dim)).result


def copy_body(
    view: LinalgOp, elements: Sequence[ir.Value], index: Callable[[int], ir.Value] | None = None
) -> list[ir.Value]:
    """Builds the body of a linalg op on other elements at the insertion point; returns what it hands out.

    `index` gives what stands for the counter of a loop; without it, that stays.
    """
    return copy_block(view.body, elements, index)


def copy_block(
    block: ir.Block, arguments: Sequence[ir.Value], index: Callable[[int], ir.Value] | None = None
) -> list[ir.Value]:
    """Copies the ops of a block to the insertion point, with values for its arguments; see `copy_body`."""
    known: dict[ir.Value, ir.Value] = dict(zip(block.arguments, arguments, strict=True))
    *ops, terminator = [op.operation for op in block.operations]
    for op in ops:
        if op.name == "linalg.index" and index is not None:
            known[op.results[0]] = index(_counted(op))
            continue
        inside = walk(op, "linalg.index") if index is not None and len(op.regions) else []
        values = [index(_counted(counter)) for counter in inside if index is not None]
        copy = clone(op, known)
        for counter, value in zip(walk(copy, "linalg.index") if inside else (), values, strict=True):
            replace(counter, [value])
    return [known.get(value, value) for value in terminator.operands]


def copy_value(value: ir.Value, known: dict[ir.Value, ir.Value]) -> ir.Value:
    """Copies the ops of a body behind a value to the insertion point, as far as `known` lacks their results."""
    op = defining_op(value)
    if value not in known and op is not None:
        for operand in op.operands:
            copy_value(operand, known)
        clone(op, known)
    return known.get(value, value)


def _counted(index: ir.Operation) -> int:
    """The loop whose counter a linalg.index is."""
    return ir.IntegerAttr(index.attributes["dim"]).value


def copy_attributes(source: ir.Operation, target: ir.Operation, prefix: str = "") -> None:
    """Gives an op the attributes of another one whose names begin like that, apart from those it has."""
    for name in source.attributes:
        if name.startswith(prefix) and name not in target.attributes:
            target.attributes[name] = source.attributes[name]


def read_by(generic: ir.Operation, number: int, value: ir.Value, indexing: ir.AffineMap) -> None:
    """Has a linalg.generic read another value for one of its operands, by a map of its own."""
    maps = list(generic.attributes["indexing_maps"])
    maps[number] = ir.AffineMapAttr.get(indexing)
    generic.attributes["indexing_maps"] = ir.ArrayAttr.get(maps)
    generic.operands[number] = value


def drop_unused_inputs(generic: ir.Operation) -> ir.Operation | None:
    """Takes away the inputs that the body does not read, where the others say how often the loops run.

    Returns the op without them; None if there were none.
    """
    view = structured(generic)
    assert view is not None
    kept = [
        number
        for number in range(len(generic.operands))
        if number >= view.inputs or not is_unused(view.body.arguments[number])
    ]
    maps = [view.maps[number] for number in kept]
    if len(kept) == len(generic.operands) or bounded_loops(maps) != set(range(view.loops)):
        return None
    if WINOGRAD in generic.attributes:  # an input of it is another form of another one
        return None
    operands = [generic.operands[number] for number in kept]
    inputs, outputs = operands[: len(kept) - len(generic.results)], operands[len(kept) - len(generic.results) :]

    def body(elements: Sequence[ir.BlockArgument]) -> list[ir.Value]:
        known = dict(zip(kept, elements, strict=True))
        arguments = [known.get(number, elements[0]) for number in range(len(view.maps))]
        return copy_body(view, arguments)

    with before(generic):
        made = build_generic(inputs, outputs, maps, list(generic.attributes["iterator_types"]), body)
    copy_attributes(generic, made)
    replace(generic, list(made.results))
    return made


def drop_dead_ops(generic: ir.Operation) -> None:
    """Takes away what the body of a linalg.generic computes for nothing."""
    for inner in reversed([op.operation for op in generic.regions[0].blocks[0].operations][:-1]):
        if is_pure(inner) and all(map(is_unused, inner.results)):
            inner.erase()


def generalize(op: ir.Operation) -> ir.Operation:
    """A linalg.generic in the place of a named linalg op on tensors."""
    view = any_structured(op)
    assert view is not None, f"{op.name} has no indexing maps"
    operands = list(op.operands)
    with before(op):
        generic = build_generic(
            operands[: view.inputs],
            operands[view.inputs :],
            view.maps,
            iterator_types(view.reductions),
            lambda elements: copy_body(view, elements),
        )
    copy_attributes(op, generic, "pipeline.")
    replace(op, list(generic.results))
    return generic


def choose(condition: ir.Value, then: ir.Value, otherwise: ir.Value) -> ir.Value:
    """At the insertion point: one of two values of the same type; of tensors of known size, element by element."""
    if then == otherwise:
        return then
    if not isinstance(then.type, ir.RankedTensorType):
        return arith.SelectOp(condition, then, otherwise).result
    kind = ir.RankedTensorType(then.type)
    identity = ir.AffineMap.get_identity(kind.rank)

    def body(elements: Sequence[ir.BlockArgument]) -> list[ir.Value]:
        return [arith.SelectOp(condition, elements[0], elements[1]).result]

    empty = tensor.EmptyOp(kind.shape, kind.element_type).result
    return build_generic([then, otherwise], [empty], [identity] * 3, iterator_types([False] * kind.rank), body).results[
        0
    ]


def inline_block(block: ir.Block, arguments: Sequence[ir.Value], anchor: ir.Operation) -> list[ir.Value]:
    """Moves the ops of `block` in front of `anchor`, with `arguments` for its arguments; returns what it handed on.

    The terminator stays behind, without uses of its own; the caller erases the op around `block`.
    """
    for argument, value in zip(block.arguments, arguments, strict=True):
        argument.replace_all_uses_with(value)
    *ops, terminator = [op.operation for op in block.operations]
    for op in ops:
        op.move_before(anchor)
    return list(terminator.operands)


def branch_on_selects(root: ir.Operation) -> None:
    """select %p, %x, %y on tensors -> scf.if %p { yield %x } else { yield %y }, everywhere in `root`.

    MLIR folds branches that compute nothing to selects, which torch-mlir does not know on tensors, and which
    bufferization refuses where it would have to copy one side of them.
    """
    for select in walk(root, "arith.select"):
        if not isinstance(select.results[0].type, ir.RankedTensorType):
            continue
        condition, *values = select.operands
        with before(select):
            branch = scf.IfOp(condition, [select.results[0].type], has_else=True)
        for block, value in zip((branch.then_block, branch.else_block), values, strict=True):
            with select.location, ir.InsertionPoint(block):
                scf.YieldOp([value])
        replace(select, list(branch.results))


def argument_marks(function: ir.Operation) -> list[ir.DictAttr]:
    """The attributes of each argument of a func.func."""
    known = list(function.attributes["arg_attrs"]) if "arg_attrs" in function.attributes else []
    count = len(function.regions[0].blocks[0].arguments)
    return [ir.DictAttr(mark) for mark in known] or [ir.DictAttr.get({})] * count


def add_argument(function: ir.Operation, kind: ir.Type, *marks: str) -> ir.Value:
    """Gives a func.func one more argument of type `kind`, with these unit attributes."""
    block = function.regions[0].blocks[0]
    known = argument_marks(function)
    argument = block.add_argument(kind, function.location)
    known.append(ir.DictAttr.get({mark: ir.UnitAttr.get() for mark in marks}))
    update_signature(function)
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(known)
    return argument


def update_signature(function: ir.Operation) -> None:
    """Makes the type of a func.func that of its block's arguments and of what it returns, which have changed."""
    block = function.regions[0].blocks[0]
    inputs, results = ([value.type for value in values] for values in (block.arguments, terminator(block).operands))
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))
