"""The `fusion` dialect: what becomes one kernel.

`fusion.group` is an op with one region whose ops become one kernel. It is isolated from above: what it reads from
outside is an explicit operand, values captured from enclosing regions included. `kind` says how a target lowers it
(`elementwise`, `reduction`, `matmul`, `conv`, ...) and `label` is its readable name, e.g. `fused_conv2d_add_relu`.
`fusion.yield` ends the region and hands out the group's results.
"""

from collections.abc import Sequence
from typing import Any

from pipeline.mlir import ext, ir


class Fusion(ext.Dialect, name="fusion"):
    """Groups of ops that become one kernel each."""


class Yield(Fusion.Operation, name="yield", traits=[ir.IsTerminatorTrait]):
    """Ends a group; its operands are the group's results."""

    values: Sequence[ext.Operand[Any]]


class Group(Fusion.Operation, name="group", traits=[ir.IsIsolatedFromAboveTrait]):
    """Ops that become one kernel; see the module's docstring."""

    inputs: Sequence[ext.Operand[Any]]
    kind: ir.StringAttr
    label: ir.StringAttr
    outputs: Sequence[ext.Result[Any]]
    body: ext.Region

    def verify_invariants(self) -> bool:
        """One block that takes the operands' types and yields the results' types."""
        problem = self._problem()
        if problem:
            self.location.emit_error(f"'fusion.group' op {problem}")
        return problem is None

    def _problem(self) -> str | None:
        blocks = list(self.body.blocks)
        if len(blocks) != 1:
            return f"expects one block, has {len(blocks)}"
        operation = self.operation
        takes = [argument.type for argument in blocks[0].arguments]
        given = [operand.type for operand in operation.operands]
        if takes != given:
            return f"has operands of types ({_join(given)}), its block takes ({_join(takes)})"
        terminator = blocks[0].operations[len(blocks[0].operations) - 1].operation
        if terminator.name != "fusion.yield":
            return f"must end with 'fusion.yield', ends with '{terminator.name}'"
        yields = [operand.type for operand in terminator.operands]
        returned = [result.type for result in operation.results]
        if yields != returned:
            return f"has results of types ({_join(returned)}), its block yields ({_join(yields)})"
        if not self.kind.value or not self.label.value:
            return "needs a kind and a label"
        return None


def _join(types: list[ir.Type]) -> str:
    return ", ".join(map(str, types))
