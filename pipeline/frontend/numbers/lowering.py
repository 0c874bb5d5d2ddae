"""lower_numbers: what computes with numbers becomes scalar ops that torch-mlir has, or ops on tensors."""

from __future__ import annotations

import operator

import torch
from torch import fx

from pipeline.errors import UnsupportedOpError
from pipeline.frontend.fx_passes.source_lines import source_line
from pipeline.frontend.numbers.boxes import Boxes, dtype_of, is_number, value_of
from pipeline.frontend.numbers.functions import FUNCTIONS, stays_number

aten = torch.ops.aten


def lower_numbers(graph: fx.Graph) -> None:
    """sym_float(s) / 3  →  item(to(full([], s), f64) / 3): see the package; x * n  →  x * full([], n).

    Raises:
        UnsupportedOpError: the graph has a function of numbers that is none of torch's.
    """
    boxes = Boxes(graph)
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        boxes.origin = node
        if node.target is aten._local_scalar_dense.default:
            boxes.unbox(boxes.read(node.args[0], dtype_of(node)), node)
        elif node.target is aten.full.default and not node.args[0] and isinstance(node.args[1], fx.Node):
            node.replace_all_uses_with(boxes.box(node.args[1], value_of(node).dtype))
        elif isinstance(node.target, torch._ops.OpOverload):
            _box_operands(node, boxes)
        elif is_number(node) and not stays_number(node):
            _lower(node, boxes)


def _lower(node: fx.Node, boxes: Boxes) -> None:
    if _is_whole_remainder(node):
        _expand_remainder(node, boxes)
    elif node.target in FUNCTIONS:
        boxes.unbox(FUNCTIONS[node.target](boxes, node.args, dtype_of(node)), node)
    elif any(is_number(operand) for operand in node.all_input_nodes):
        line = source_line(node)
        name = getattr(node.target, "__name__", str(node.target))
        raise UnsupportedOpError([(name, f"{line[0]}:{line[1]}" if line else None, "is no known function of numbers")])


def _is_whole_remainder(node: fx.Node) -> bool:
    values = [value_of(operand) for operand in node.args]
    return node.target is operator.mod and all(type(value) in (int, torch.SymInt) for value in values)


def _expand_remainder(node: fx.Node, boxes: Boxes) -> None:
    """a % b  →  a - a // b * b, for whole numbers: torch-mlir takes % for C's remainder, and lacks that."""
    a, b = node.args
    quotient = boxes.compute(operator.floordiv, a, b, value=value_of(a) // value_of(b))
    product = boxes.product([quotient, b])
    difference = boxes.compute(operator.sub, a, product, value=value_of(node))
    node.replace_all_uses_with(difference)
    node.graph.erase_node(node)


def _box_operands(node: fx.Node, boxes: Boxes) -> None:
    """mul.Tensor(x, n)  →  mul.Tensor(x, full([], n)), where the schema has a tensor, in the dtype that torch takes.

    Torch computes in the dtype of the result; comparisons in that of the tensor, if it is of the number's kind or a
    higher one.
    """
    for index, (argument, given) in enumerate(zip(node.target._schema.arguments, node.args, strict=False)):
        if isinstance(argument.type, torch.TensorType) and isinstance(given, fx.Node) and is_number(given):
            node.update_arg(index, boxes.box(given, _dtype_of_operand(node, given)))


def _dtype_of_operand(node: fx.Node, number: fx.Node) -> torch.dtype:
    result = value_of(node).dtype
    tensors = [value_of(operand) for operand in node.all_input_nodes if isinstance(value_of(operand), torch.Tensor)]
    if result != torch.bool or not tensors:
        return result
    kinds = {torch.bool: True, torch.int64: 1, torch.float64: 1.0}
    return torch.result_type(tensors[0], kinds[dtype_of(number)])
