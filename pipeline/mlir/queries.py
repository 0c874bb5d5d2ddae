"""Finds ops and values, asks what they are, and copies ops."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection

from pipeline.errors import CompileError
from pipeline.mlir.bindings import ir

#: What the bodies of linalg ops, which compute numbers, do not have inside, but for the names behind that.
_NOT_IN_BODIES, _IN_BODIES = ("linalg.", "func.func", "tm_tensor."), ("linalg.index", "linalg.yield")

_FUNCTIONS = frozenset({"func.func", "llvm.func"})

_ADVANCE, _SKIP = ir.WalkResult.ADVANCE, ir.WalkResult.SKIP


def walk(op: ir.Operation | ir.Module, *names: str) -> list[ir.Operation]:
    """The operations inside `op` that are called one of `names`, in program order, outer before inner."""
    wanted, found = frozenset(names), list[ir.Operation]()
    of_those = _SKIP if wanted <= _FUNCTIONS else _ADVANCE  # there are none in functions
    in_bodies = may_be_in_bodies(*names)

    def visit(inner: ir.Operation) -> ir.WalkResult:
        name = inner.name
        if name in wanted:
            found.append(inner)
            return of_those if in_bodies or not name.startswith("linalg.") else _SKIP
        return _ADVANCE if in_bodies or not name.startswith("linalg.") else _SKIP

    op.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def may_be_in_bodies(*names: str) -> bool:
    """Whether the bodies of linalg ops may have an op with one of these names, which may end in a star."""
    return not all(name.startswith(_NOT_IN_BODIES) and name not in (*_IN_BODIES, "linalg.*") for name in names)


def walk_where(
    op: ir.Operation | ir.Module,
    is_wanted: Callable[[ir.Operation], bool],
    outermost: bool = False,
    in_bodies: bool = True,
) -> list[ir.Operation]:
    """The operations inside `op` of which `is_wanted` holds, in program order, outer before inner.

    With `outermost`, what is inside of such an operation is left out; without `in_bodies`, what is inside of linalg
    ops: most ops of a module are.
    """
    found: list[ir.Operation] = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        if is_wanted(inner):
            found.append(inner)
            if outermost:
                return _SKIP
        return _ADVANCE if in_bodies or not inner.name.startswith("linalg.") else _SKIP

    op.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def walk_innermost_first(op: ir.Operation | ir.Module, *names: str) -> list[ir.Operation]:
    """The operations inside `op` that are called one of `names`, inner before outer."""
    found: list[ir.Operation] = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        if inner.operation.name in names:
            found.append(inner.operation)
        return ir.WalkResult.ADVANCE

    op.operation.walk(visit, ir.WalkOrder.POST_ORDER)
    return found


def ops_of(root: ir.Operation) -> list[ir.Operation]:
    """`root` and all operations inside it, in program order, outer before inner."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        found.append(op.operation)
        return ir.WalkResult.ADVANCE

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def function(module: ir.Module | ir.Operation, name: str) -> ir.Operation:
    """The function `name` of `module`; raises `CompileError` if there is none."""
    for op in (op.operation for op in module.operation.regions[0].blocks[0].operations):
        if op.name == "func.func" and symbol_name(op) == name:
            return op
    raise CompileError(f"the module has no function @{name}")


def symbol_name(op: ir.Operation) -> str:
    """The name of a function, or of another op that has one."""
    return ir.StringAttr(op.attributes["sym_name"]).value


def callee(call: ir.Operation) -> str:
    """The name of the function that a func.call calls."""
    return ir.FlatSymbolRefAttr(call.attributes["callee"]).value


def called_function(call: ir.Operation) -> ir.Operation:
    """The function that a func.call calls."""
    module = call
    while module.name != "builtin.module":
        module = module.parent.operation
    return function(module, callee(call))


def function_around(op: ir.Operation) -> ir.Operation:
    """The func.func that an operation is in."""
    parent = op.parent.operation
    while parent.name != "func.func":
        parent = parent.parent.operation
    return parent


def calls_of(root: ir.Operation | ir.Module) -> dict[str, list[ir.Operation]]:
    """The func.calls inside `root` in program order, by the name of the function that they call."""
    found: dict[str, list[ir.Operation]] = {}
    for call in walk(root, "func.call"):
        found.setdefault(callee(call), []).append(call)
    return found


def terminator(block: ir.Block) -> ir.Operation:
    """The last op of a block."""
    return block.operations[len(block.operations) - 1].operation


def defining_op(value: ir.Value) -> ir.Operation | None:
    """The operation that `value` is a result of; None for a block argument."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def seen_through(value: ir.Value, names: Collection[str]) -> ir.Value:
    """What lies behind `value` and any number of ops called one of `names`, by their first operands."""
    while (op := defining_op(value)) is not None and op.name in names:
        value = op.operands[0]
    return value


def constant_integer(value: ir.Value) -> int | None:
    """The number that an integer or index `value` is known to be; a true i1 is 1."""
    producer = defining_op(value)
    if producer is None or producer.name != "arith.constant":
        return None
    attribute = producer.attributes["value"]
    if isinstance(attribute, ir.BoolAttr):
        return int(attribute.value)
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None


def has_one_use(value: ir.Value) -> bool:
    """Whether one op takes `value`, once."""
    return len(list(itertools.islice(value.uses, 2))) == 1


def captured_values(op: ir.Operation) -> list[ir.Value]:
    """What `op` and the ops in its regions read from outside of `op`, operands first, each once."""
    read: dict[ir.Value, None] = dict.fromkeys(op.operands)
    own: set[ir.Value] = set()

    def visit(inner: ir.Operation) -> ir.WalkResult:
        inner = inner.operation
        read.update(dict.fromkeys(inner.operands))
        own.update(inner.results)
        for region in inner.regions:
            for block in region.blocks:
                own.update(block.arguments)
        return ir.WalkResult.ADVANCE

    for region in op.regions:
        for block in region.blocks:
            own.update(block.arguments)
            for inner in block.operations:
                inner.operation.walk(visit)
    return [value for value in read if value not in own]


def remap_operands(op: ir.Operation, known: dict[ir.Value, ir.Value]) -> None:
    """Replaces the operands of `op` and of everything inside it by what `known` has for them."""

    def visit(inner: ir.Operation) -> ir.WalkResult:
        inner = inner.operation
        for number, operand in enumerate(inner.operands):
            if operand in known:
                inner.operands[number] = known[operand]
        return ir.WalkResult.ADVANCE

    op.walk(visit)


def clone(op: ir.Operation, known: dict[ir.Value, ir.Value]) -> ir.Operation:
    """A copy of `op` at the insertion point, on what `known` has for the values that it reads.

    `known` learns the results of the copy.
    """
    copy = op.clone()
    remap_operands(copy, known)
    known.update(zip(op.results, copy.results, strict=True))
    return copy


def is_inside(value: ir.Value, op: ir.Operation) -> bool:
    """Whether `value` is defined in a region of `op`."""
    owner = value.owner
    parent = owner.owner if isinstance(owner, ir.Block) else owner.operation.parent
    while parent is not None:
        if parent.operation == op:
            return True
        parent = parent.operation.parent
    return False
