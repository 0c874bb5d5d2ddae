"""What @prepare hands to @main: more of it, computed by functions that passes add."""

from __future__ import annotations

from pipeline.ir.attributes import MUTABLE, PREPARED, WEIGHT
from pipeline.ir.element_types import byte_size
from pipeline.ir.reshapes import RESHAPES
from pipeline.ir.rewriting import is_unused
from pipeline.mlir import defining_op, func, function, ir, symbol_name, tensor, terminator, walk


def is_weight(value: ir.Value) -> bool:
    """Whether a value is an argument of @main that never changes: a weight, or made of weights; or a reshape of one."""
    while (op := defining_op(value)) is not None and op.name in RESHAPES and len(op.operands) == 1:
        value = op.operands[0]
    owner = value.owner
    if not isinstance(owner, ir.Block):
        return False
    main = owner.owner.operation
    if main.name != "func.func" or symbol_name(main) != "main":
        return False
    mark = _marks(main)[ir.BlockArgument(value).arg_number]
    fixed = PREPARED in mark or (WEIGHT in mark and MUTABLE not in mark)
    return fixed and byte_size(value.type) is not None


class PreparedWeights:
    """@prepare and the arguments of @main that it computes."""

    def __init__(self, module: ir.Operation):
        self._module = module
        self._main = function(module, "main")
        self._known: dict[tuple[ir.Value, str], ir.Value] = {}

    def computed(self, weight: ir.Value, kernel: str, kind: ir.RankedTensorType) -> ir.Value:
        """An argument of @main of type `kind`, which @prepare computes from a weight by kernel(weight, destination).

        It does so right behind what it computes the weight by, so that it needs memory for one of them at a time.
        """
        key = (weight, kernel)
        if key not in self._known:
            prepare = self._prepare()
            block = prepare.regions[0].blocks[0]
            end = terminator(block)
            source = self._source(weight, prepare, end)
            with self._main.location, _behind(source, block):
                empty = tensor.EmptyOp(kind.shape, kind.element_type).result
                result = func.CallOp([kind], ir.FlatSymbolRefAttr.get(kernel), [source, empty]).results[0]
            self._known[key] = self._hand_over(result, prepare, end)
        return self._known[key]

    def finish(self) -> None:
        """Takes away what @main does not need any more."""
        if not self._known:
            return
        prepare, block = self._prepare(), self._main.regions[0].blocks[0]
        for reshape in reversed(walk(self._main, *RESHAPES)):
            if is_unused(reshape.results[0]):
                reshape.erase()
        end = terminator(prepare.regions[0].blocks[0])
        marks = _marks(self._main)
        kept: list[ir.Value] = []
        for number in reversed(range(len(block.arguments))):
            argument, mark = block.arguments[number], marks[number]
            if is_unused(argument) and (PREPARED in mark or WEIGHT in mark and MUTABLE not in mark):
                del marks[number]
                block.erase_argument(number)
        for number, mark in enumerate(marks):
            if PREPARED in mark:
                kept.append(end.operands[ir.IntegerAttr(mark[PREPARED]).value])
                marks[number] = _prepared(len(kept) - 1)
        _set_arguments(self._main, marks)
        with end.location, ir.InsertionPoint(end):
            func.ReturnOp(kept)
        end.erase()
        _set_arguments(prepare, _marks(prepare))

    def _prepare(self) -> ir.Operation:
        for candidate in walk(self._module, "func.func"):
            if symbol_name(candidate) == "prepare":
                return candidate
        with self._main.location, ir.InsertionPoint(self._main):
            made = func.FuncOp("prepare", ir.FunctionType.get([], []))
            made.attributes["arg_attrs"] = ir.ArrayAttr.get([])
            with ir.InsertionPoint(made.add_entry_block()):
                func.ReturnOp([])
        return made.operation

    def _source(self, weight: ir.Value, prepare: ir.Operation, end: ir.Operation) -> ir.Value:
        """A weight of @main in @prepare."""
        reshape = defining_op(weight)
        if reshape is not None:
            source = self._source(reshape.operands[0], prepare, end)
            with _behind(source, prepare.regions[0].blocks[0]):
                copy = reshape.clone()
            copy.operands[0] = source
            return copy.results[0]
        mark = _marks(self._main)[ir.BlockArgument(weight).arg_number]
        if PREPARED in mark:
            return end.operands[ir.IntegerAttr(mark[PREPARED]).value]
        marks, block = _marks(prepare), prepare.regions[0].blocks[0]
        for argument, known in zip(block.arguments, marks, strict=True):
            if known[WEIGHT] == mark[WEIGHT]:
                return argument
        argument = block.add_argument(weight.type, self._main.location)
        _set_arguments(prepare, [*marks, mark])
        return argument

    def _hand_over(self, value: ir.Value, prepare: ir.Operation, end: ir.Operation) -> ir.Value:
        """Makes a result of @prepare an argument of @main."""
        values = [*end.operands, value]
        with end.location, ir.InsertionPoint(end):
            func.ReturnOp(values)
        end.erase()
        _set_arguments(prepare, _marks(prepare))
        argument = self._main.regions[0].blocks[0].add_argument(value.type, self._main.location)
        _set_arguments(self._main, [*_marks(self._main), _prepared(len(values) - 1)])
        return argument


def _behind(value: ir.Value, block: ir.Block) -> ir.InsertionPoint:
    """Behind the op that computes a value, or where `block` begins if it is an argument of it."""
    producer = defining_op(value)
    return ir.InsertionPoint.at_block_begin(block) if producer is None else ir.InsertionPoint.after(producer)


def _prepared(number: int) -> ir.DictAttr:
    return ir.DictAttr.get({PREPARED: ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)})


def _marks(function: ir.Operation) -> list[ir.DictAttr]:
    count = len(function.regions[0].blocks[0].arguments)
    given = (
        [ir.DictAttr(mark) for mark in function.attributes["arg_attrs"]] if "arg_attrs" in function.attributes else []
    )
    return given or [ir.DictAttr.get({})] * count


def _set_arguments(function: ir.Operation, marks: list[ir.DictAttr]) -> None:
    """Makes the type of a function that of its block's arguments and of what it returns."""
    block = function.regions[0].blocks[0]
    results = [value.type for value in terminator(block).operands]
    kind = ir.FunctionType.get([argument.type for argument in block.arguments], results)
    function.attributes["function_type"] = ir.TypeAttr.get(kind)
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(marks)
