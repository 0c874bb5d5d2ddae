"""The `fusion` dialect: what becomes one kernel.

`fusion.group` is an op with one region whose ops become one kernel. It is isolated from above: what it reads from
outside is an explicit operand, values captured from enclosing regions included. `kind` says how a target lowers it
(`elementwise`, `reduction`, `matmul`, `conv`, ...) and `label` is its readable name, e.g. `fused_conv2d_add_relu`.
Where its ops are marked `pipeline.target`, so is the group.
`fusion.yield` ends the region and hands out the group's results:

    %r = "fusion.group"(%x, %n) ({
    ^bb0(%a: tensor<?xf32>, %b: index):
      ...
      "fusion.yield"(%y) : (tensor<?xf32>) -> ()
    }) {kind = "elementwise", label = "exp"} : (tensor<?xf32>, index) -> tensor<?xf32>

`fusion.barrier` is the identity on a tensor; no group reaches across. As the upper bound of a loop that is to be a
kernel it hides that there is one iteration, so that the loop stays. It goes when groups have formed.

The dialect is not an IRDL one (`mlir.ext`), because IRDL gives all values of a variadic operand one type, and a group
has operands and results of many. MLIR therefore sees unregistered ops: `verify` checks them where MLIR's verifier
can't. MLIR's passes take an op that they do not know for one that may be isolated, and leave its borders alone.
`verify` goes when IRDL verifies variadics value by value.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from pipeline.diagnostics import Diagnostic
from pipeline.errors import CompileError
from pipeline.ir.attributes import KERNEL, STOP_FUSION, TARGET
from pipeline.mlir import captured_values, clone, defining_op, ir, position

GROUP = "fusion.group"
YIELD = "fusion.yield"
BARRIER = "fusion.barrier"
OPS = (GROUP, YIELD, BARRIER)


def target_of(op: ir.Operation) -> str | None:
    """The target that an op is marked with."""
    return ir.StringAttr(op.attributes[TARGET]).value if TARGET in op.attributes else None


def stops_fusion(value: ir.Value) -> bool:
    """Whether what computes `value` may not be fused with what reads it."""
    producer = defining_op(value)
    return producer is not None and (producer.name == BARRIER or STOP_FUSION in producer.attributes)


def behind_barriers(op: ir.Operation | None) -> ir.Operation | None:
    """The op that computes what a barrier stands behind; any other op itself."""
    while op is not None and op.name == BARRIER:
        op = defining_op(op.operands[0])
    return op


def create_group(ops: Sequence[ir.Operation], results: Sequence[ir.Value], kind: str, label: str) -> ir.Operation:
    """Puts copies of `ops` (in program order) into a new group at the insertion point; it yields `results`.

    Values that `ops` read from outside become operands; constants among them are copied in. The caller replaces the
    uses of `results` by the group's, and erases what it does not need any more.
    """
    made = {result for op in ops for result in op.results}
    read = dict.fromkeys(value for op in ops for value in captured_values(op) if value not in made)
    constants = {value: makers for value in read if (makers := _scalar_constant(value))}
    inputs = [value for value in read if value not in constants]
    attributes = {"kind": ir.StringAttr.get(kind), "label": ir.StringAttr.get(label)}
    targets = [target for target in map(target_of, ops) if target is not None]
    if targets:
        attributes[TARGET] = ir.StringAttr.get(targets[0])
    group = ir.Operation.create(
        GROUP, results=[value.type for value in results], operands=inputs, attributes=attributes, regions=1
    )
    block = ir.Block.create_at_start(group.regions[0], [value.type for value in inputs])
    known: dict[ir.Value, ir.Value] = dict(zip(inputs, block.arguments, strict=True))
    with ir.InsertionPoint(block):
        for op in [*chain.from_iterable(constants.values()), *ops]:
            clone(op, known)
        ir.Operation.create(YIELD, operands=[known[value] for value in results])
    return group


def _scalar_constant(value: ir.Value) -> list[ir.Operation]:
    """The ops that make a number that is known, one behind a barrier too; none for other values."""
    producer = defining_op(value)
    if producer is None or isinstance(value.type, ir.ShapedType):
        return []
    if producer.name == BARRIER:
        hidden = _scalar_constant(producer.operands[0])
        return [*hidden, producer] if hidden else []
    return [producer] if producer.name == "arith.constant" else []


def hide(value: ir.Value) -> ir.Value:
    """A number behind a barrier, at the insertion point."""
    barrier: ir.Operation = ir.Operation.create(BARRIER, results=[value.type], operands=[value])
    return barrier.results[0]


def verify(root: ir.Operation) -> None:
    """Raises `CompileError` if an op of this dialect inside `root` is malformed."""
    for op in _ops(root):
        problem = _PROBLEMS[op.name](op)
        if problem:
            found = Diagnostic("error", f"'{op.name}' op {problem}", *position(op.location))
            raise CompileError(str(found), [found])


def _ops(root: ir.Operation) -> list[ir.Operation]:
    """The ops of this dialect; there are none in kernels and the bodies of linalg ops, which are most of a module."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        op = op.operation
        name = op.name
        if name in OPS:
            found.append(op)
        is_kernel = name == "func.func" and KERNEL in op.attributes
        return ir.WalkResult.SKIP if is_kernel or name.startswith("linalg.") else ir.WalkResult.ADVANCE

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _yield_problem(op: ir.Operation) -> str | None:
    parent = op.parent
    if parent is None or parent.operation.name != GROUP:
        return "expects to be inside a 'fusion.group'"
    if op.results or op.regions:
        return "has no results and no regions"
    return None


def _group_problem(group: ir.Operation) -> str | None:
    if len(group.regions) != 1 or len(group.regions[0].blocks) != 1:
        return "expects one region with one block"
    for name in ("kind", "label"):
        if name not in group.attributes or not isinstance(group.attributes[name], ir.StringAttr):
            return f"needs the string attribute '{name}'"
    block = group.regions[0].blocks[0]
    given = [operand.type for operand in group.operands]
    takes = [argument.type for argument in block.arguments]
    if takes != given:
        return f"has operands of types ({_join(given)}), its block takes ({_join(takes)})"
    ops = list(block.operations)
    if not ops or ops[-1].operation.name != YIELD:
        return "must end with 'fusion.yield'"
    yields = [operand.type for operand in ops[-1].operation.operands]
    returned = [result.type for result in group.results]
    if yields != returned:
        return f"has results of types ({_join(returned)}), its block yields ({_join(yields)})"
    operands = set(group.operands)
    if any(value not in operands for value in captured_values(group)):
        return "reads a value from outside that is not an operand"
    return None


def _barrier_problem(op: ir.Operation) -> str | None:
    types = [value.type for value in (*op.operands, *op.results)]
    if len(op.operands) != 1 or len(op.results) != 1 or op.regions:
        return "takes one value and gives one"
    return None if types[0] == types[1] else f"takes a {types[0]} and gives a {types[1]}"


_PROBLEMS = {GROUP: _group_problem, YIELD: _yield_problem, BARRIER: _barrier_problem}


def _join(types: list[ir.Type]) -> str:
    return ", ".join(map(str, types))
