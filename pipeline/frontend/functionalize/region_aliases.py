"""Which results of branches and loops may lie in one memory with other values, and what must not be written then."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from torch import fx

from pipeline.errors import CaptureError
from pipeline.frontend.functionalize.higher_order_call import RegionCall, regions_of
from pipeline.frontend.functionalize.schema_aliases import root, written
from pipeline.frontend.fx_passes.source_lines import source_line

#: Marks a `copy_` that takes the place of a write in an inner graph: the original program writes to both values there.
WRITES_BACK = "pipeline_writes_back"

#: What `shared_memory` found, at the call.
_SHARED = "pipeline_shared_memory"


def shared_memory(call: RegionCall, loops_share: bool) -> set[tuple[int, Any]]:
    """(result, value of the graph around or number of another result) for those that may lie in one memory."""
    pairs: set[tuple[int, Any]] = set()
    for module in call.modules[1:] if call.kind == "while_loop" else call.modules:
        operands = dict(zip(call.placeholders(module), call.operands, strict=True))
        roots = [possible_roots(value) for value in call.outputs(module)]
        for number, bases in enumerate(roots):
            pairs.update(
                (number, base) for value in bases & operands.keys() for base in possible_roots(operands[value])
            )
            pairs.update((number, other) for other in range(number) if bases & roots[other])
    if call.kind == "while_loop" and loops_share:
        first = enumerate(call.operands[: call.fixed])
        pairs.update((number, base) for number, value in first for base in possible_roots(value))
    call.node.meta[_SHARED] = pairs
    return pairs


def possible_roots(value: Any) -> set[fx.Node]:
    """The values in whose memory `value` may lie in the original program."""
    if not isinstance(value, fx.Node):
        return set()
    found = {root(value)}
    for base in list(found):
        if base.target is operator.getitem and regions_of(base.args[0]):
            pairs = base.args[0].meta.get(_SHARED, ())
            found |= {other for number, other in pairs if number == base.args[1] and isinstance(other, fx.Node)}
    return found


def refuse_later_writes(call: RegionCall, shared: set[tuple[int, Any]]) -> None:
    """Refuses a write behind the call to one of two values that shared memory, if the other can be read after it."""
    nodes = list(call.node.graph.nodes)
    following = nodes[nodes.index(call.node) + 1 :]
    for number, other in shared:
        result = call.node, number
        partner = (call.node, other) if isinstance(other, int) else value_of(other)
        for place, node in enumerate(following):
            if WRITES_BACK in node.meta:
                continue
            bases = [value_of(root(value)) for value in _written_by(node)]
            for one, another in ((result, partner), (partner, result)):
                if one in bases and is_readable(another, following[place + 1 :]):
                    raise refusal(node, _MAY_SHARE)


def _written_by(node: fx.Node) -> list[fx.Node]:
    """What a node writes to, also in the graphs of a branch or loop, which are not purified yet."""
    if not regions_of(node):
        return written(node)
    call = RegionCall(node)
    found = []
    for module in call.modules:
        places = dict(zip(call.placeholders(module), call.operands, strict=True))
        bases = {root(value) for inner in module.graph.nodes for value in _written_by(inner)}
        found += [places[base] for base in bases if base in places]
    return found


_MAY_SHARE = (
    "this writes in place to a tensor that is one with the result of a branch or loop in some runs and not in others; "
    "clone it before"
)


def value_of(node: fx.Node) -> Any:
    """What tells values apart: the node, or (call, number) for a result of a call with regions."""
    if node.target is operator.getitem and regions_of(node.args[0]):
        return node.args[0], node.args[1]
    return node


def is_readable(value: Any, nodes: Sequence[fx.Node]) -> bool:
    """Whether one of the nodes reads the value, or the caller can."""
    is_input = isinstance(value, fx.Node) and value.op == "placeholder"
    return is_input or any(value_of(root(operand)) == value for node in nodes for operand in node.all_input_nodes)


def refusal(node: fx.Node, reason: str) -> CaptureError:
    """The error that says why the model is refused at `node`, with its source line."""
    line = source_line(node)
    return CaptureError(f"{line[0]}:{line[1]}: {reason}" if line else reason)
