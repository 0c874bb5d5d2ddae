"""cond, while_loop, scan and map → torch.prim.If and torch.prim.Loop, their graphs imported inline as regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy
import torch
from torch import fx
from torch_mlir.extras import fx_importer

from pipeline.errors import UnsupportedOpError
from pipeline.frontend.fx_passes.simplify import attribute
from pipeline.frontend.importer.torch_to_linalg import HIDDEN_TRUE
from pipeline.frontend.numbers.checks import message_of
from pipeline.mlir import ir

#: Loops end by their condition alone.
_ENDLESS = 2**63 - 1


class NodeImporter(fx_importer.GraphNodeImporter):
    """torch-mlir's importer of nodes, with regions for control flow; what a branch captures is used as it is."""

    __slots__: list[str] = []

    def _import_torch_op_overload(self, loc: ir.Location, node: fx.Node, concrete_target: Any = None) -> None:
        """_assert_scalar(n, message) → runtime.assert, of which guard-traps makes a check."""
        if node.target is not torch.ops.aten._assert_scalar.default:
            super()._import_torch_op_overload(loc, node, concrete_target)
            return
        condition, message = node.args
        text = ir.StringAttr.get(message_of(message), self._c)
        operands = [self._bool(loc, self._import_argument(loc, condition))]
        ir.Operation.create("torch.runtime.assert", operands=operands, attributes={"message": text}, loc=loc)

    def _import_hop_cond(self, loc: ir.Location, node: fx.Node, hop: Any) -> None:
        """cond(p, f, g, operands) → prim.If p { f(operands) } else { g(operands) }."""
        predicate, *branches, operands = node.args
        values = self._values(loc, operands)
        types = self._types(node)
        condition = self._bool(loc, self._import_argument(loc, predicate))
        branch = ir.Operation.create("torch.prim.If", results=types, operands=[condition], regions=2, loc=loc)
        for region, graph in zip(branch.regions, branches, strict=True):
            with loc:
                block = ir.Block.create_at_start(region, [])
            results = self._inline(loc, graph, block, values)
            with ir.InsertionPoint(block):
                yielded = [self._cast(loc, value, kind) for value, kind in zip(results, types, strict=True)]
                ir.Operation.create("torch.prim.If.yield", operands=yielded, loc=loc)
        self._bind_results(node, branch)

    def _import_hop_while_loop(self, loc: ir.Location, node: fx.Node, hop: Any) -> None:
        """while_loop(c, f, carried, captured) → prim.Loop, the condition at its end for the next round."""
        condition, body, carried, captured = node.args
        types = self._types(node)
        extra = self._values(loc, captured)
        start = [self._cast(loc, value, kind) for value, kind in zip(self._values(loc, carried), types, strict=True)]
        (first,) = self._inline(loc, condition, ir.InsertionPoint.current.block, [*start, *extra])
        first = self._hide_from_folders(loc, self._bool(loc, first))
        loop = ir.Operation.create(
            "torch.prim.Loop", results=types, operands=[self._int(loc, _ENDLESS), first, *start], regions=1, loc=loc
        )
        with loc:
            block = ir.Block.create_at_start(loop.regions[0], [self._cc.torch_int_type, *types])
        results = self._inline(loc, body, block, [*list(block.arguments)[1:], *extra])
        with ir.InsertionPoint(block):
            results = [self._cast(loc, value, kind) for value, kind in zip(results, types, strict=True)]
        (following,) = self._inline(loc, condition, block, [*results, *extra])
        with ir.InsertionPoint(block):
            operands = [self._bool(loc, following), *results]
            ir.Operation.create("torch.prim.Loop.condition", operands=operands, loc=loc)
        self._bind_results(node, loop)

    def _import_hop_scan(self, loc: ir.Location, node: fx.Node, hop: Any) -> None:
        """scan(f, carried, xs, captured) → a prim.Loop over the rows of xs that puts rows into the stacked results."""
        graph, carried, xs, captured = node.args
        self._import_rows(loc, node, graph, carried, xs, captured)

    def _import_hop_map_impl(self, loc: ir.Location, node: fx.Node, hop: Any) -> None:
        """map(f, xs, captured) → likewise, with nothing carried."""
        graph, xs, captured = node.args
        self._import_rows(loc, node, graph, (), xs, captured)

    def _import_rows(
        self, loc: ir.Location, node: fx.Node, graph: fx.Node, carried: Any, xs: Any, captured: Any
    ) -> None:
        types = self._types(node)
        count = len(carried)
        sequences, extra = self._values(loc, xs), self._values(loc, captured)
        zero = self._int(loc, 0)
        rounds = self._op(loc, "aten.size.int", self._cc.torch_int_type, sequences[0], zero)
        start = [
            self._cast(loc, value, kind) for value, kind in zip(self._values(loc, carried), types[:count], strict=True)
        ]
        sizes = SizeImporter(self, loc, [*carried, *xs, *captured])
        start += [
            self._empty(loc, [rounds, *map(sizes.size, value.shape[1:])], value.dtype, kind)
            for value, kind in zip(node.meta["val"][count:], types[count:], strict=True)
        ]
        true = self._true(loc)
        loop = ir.Operation.create(
            "torch.prim.Loop", results=types, operands=[rounds, true, *start], regions=1, loc=loc
        )
        with loc:
            block = ir.Block.create_at_start(loop.regions[0], [self._cc.torch_int_type, *types])
        index, *state = block.arguments
        placeholders = [inner_node for inner_node in attribute(graph).graph.nodes if inner_node.op == "placeholder"]
        with ir.InsertionPoint(block):
            rows = [
                self._op(loc, "aten.select.int", self._cc.node_val_to_type(row), sequence, zero, index)
                for sequence, row in zip(sequences, placeholders[count:], strict=False)
            ]
        results = self._inline(loc, graph, block, [*state[:count], *rows, *extra])
        with ir.InsertionPoint(block):
            following = [self._cast(loc, value, kind) for value, kind in zip(results[:count], types, strict=False)]
            following += [
                self._op(loc, "aten.select_scatter", kind, stacked, row, zero, index)
                for stacked, row, kind in zip(state[count:], results[count:], types[count:], strict=True)
            ]
            ir.Operation.create("torch.prim.Loop.condition", operands=[true, *following], loc=loc)
        self._bind_results(node, loop)

    def _empty(self, loc: ir.Location, sizes: list[ir.Value], dtype: torch.dtype, kind: ir.Type) -> ir.Value:
        shape = self._op(loc, "prim.ListConstruct", ir.Type.parse("!torch.list<int>", self._c), *sizes)
        none = self._op(loc, "constant.none", self._cc.torch_none_type)
        number = self._int(loc, fx_importer.TORCH_DTYPE_TO_INT[dtype])
        return self._op(loc, "aten.empty.memory_format", kind, shape, number, none, none, none, none)

    def _inline(self, loc: ir.Location, graph: fx.Node, block: ir.Block, values: Sequence[ir.Value]) -> list[ir.Value]:
        """Imports the graph that a get_attr node names at the end of `block`; `values` are its placeholders."""
        module = attribute(graph)
        inner = type(self)(self.fx_importer, self._c, self._cc, block)
        placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        for placeholder, value in zip(placeholders, values, strict=True):
            inner.bind_node_value(placeholder, value)
        inner.import_nodes(module.graph.nodes, skip_placeholders_outputs=True)
        output = next(node for node in module.graph.nodes if node.op == "output").args[0]
        with ir.InsertionPoint(block):
            return inner._values(loc, output if isinstance(output, (list, tuple)) else [output])

    def _values(self, loc: ir.Location, arguments: Sequence[Any]) -> list[ir.Value]:
        return [self._import_argument(loc, argument) for argument in arguments]

    def _types(self, node: fx.Node) -> list[ir.Type]:
        return [self._cc.value_info_to_type(value) for value in node.meta["val"]]

    def _bind_results(self, node: fx.Node, op: ir.Operation) -> None:
        self._multi_result_nodes.add(node)
        for number, result in enumerate(op.results):
            self.bind_node_value(node, result, number)

    def _cast(self, loc: ir.Location, value: ir.Value, kind: ir.Type) -> ir.Value:
        """The value with the static information that the op around promises."""
        if value.type == kind:
            return value
        return ir.Operation.create("torch.tensor_static_info_cast", results=[kind], operands=[value], loc=loc).result

    def _bool(self, loc: ir.Location, value: ir.Value) -> ir.Value:
        kind = self._cc.torch_bool_type
        if value.type == kind:
            return value
        return ir.Operation.create("torch.aten.Bool.Tensor", results=[kind], operands=[value], loc=loc).result

    def _int(self, loc: ir.Location, value: int) -> ir.Value:
        number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64, self._c), value)
        kind = self._cc.torch_int_type
        return ir.Operation.create("torch.constant.int", results=[kind], attributes={"value": number}, loc=loc).result

    def _true(self, loc: ir.Location) -> ir.Value:
        kind = self._cc.torch_bool_type
        true = {"value": ir.IntegerAttr.get(ir.IntegerType.get_signless(1, self._c), 1)}
        return ir.Operation.create("torch.constant.bool", results=[kind], attributes=true, loc=loc).result

    def _op(self, loc: ir.Location, name: str, kind: ir.Type, *operands: ir.Value) -> ir.Value:
        return ir.Operation.create(f"torch.{name}", results=[kind], operands=list(operands), loc=loc).result

    def _hide_from_folders(self, loc: ir.Location, condition: ir.Value) -> ir.Value:
        """The condition AND a true that no folder of torch-mlir can see, since it lies in a resource.

        Gets round a miscompile: PrimLoopOp::isForLike() looks only at whether the first condition is constantly true,
        and makes `while i < 5` from i = 0 an endless for loop. Remove when it looks at the later conditions too.
        `to_linalg` shows it again.
        """
        with loc:
            stored = ir.RankedTensorType.get([2], ir.IntegerType.get_signed(64, self._c))
            ones = ir.DenseResourceElementsAttr.get_from_buffer(np.ones(2, np.int64), HIDDEN_TRUE, stored)
        vector, scalar = (ir.Type.parse(f"!torch.vtensor<[{size}],si64>", self._c) for size in ("2", ""))
        literal = ir.Operation.create("torch.vtensor.literal", results=[vector], attributes={"value": ones}, loc=loc)
        zero = self._int(loc, 0)
        true = ir.Operation.create(
            "torch.aten.select.int", results=[scalar], operands=[literal.result, zero, zero], loc=loc
        )
        operands = [condition, self._bool(loc, true.result)]
        kind = self._cc.torch_bool_type
        return ir.Operation.create("torch.aten.__and__.bool", results=[kind], operands=operands, loc=loc).result


class SizeImporter:
    """Computes sizes that are expressions in symbols, from values whose shapes have these symbols."""

    def __init__(self, importer: NodeImporter, loc: ir.Location, values: Sequence[Any]):
        self._importer = importer
        self._loc = loc
        self._places: dict[Any, tuple[fx.Node, int | None]] = {}
        for value in values:
            known = value.meta.get("val") if isinstance(value, fx.Node) else None
            if isinstance(known, torch.SymInt):
                self._places[known.node.expr] = (value, None)
            elif isinstance(known, torch.Tensor):
                for dim, size in enumerate(known.shape):
                    if isinstance(size, torch.SymInt):
                        self._places.setdefault(size.node.expr, (value, dim))

    def size(self, size: int | torch.SymInt) -> ir.Value:
        """The size as a torch.int."""
        return self._compute(sympy.Integer(size) if isinstance(size, int) else size.node.expr)

    def _compute(self, expression: sympy.Expr) -> ir.Value:
        importer, loc, kind = self._importer, self._loc, self._importer._cc.torch_int_type
        if expression.is_Integer:
            return importer._int(loc, int(expression))
        if expression in self._places:
            node, dim = self._places[expression]
            value = importer._import_argument(loc, node)
            return value if dim is None else importer._op(loc, "aten.size.int", kind, value, importer._int(loc, dim))
        if isinstance(expression, (sympy.Add, sympy.Mul)):
            name = "aten.add.int" if isinstance(expression, sympy.Add) else "aten.mul.int"
            first, *others = map(self._compute, expression.args)
            for other in others:
                first = importer._op(loc, name, kind, first, other)
            return first
        raise UnsupportedOpError([("scan", None, f"stacks results of the size {expression}")])
