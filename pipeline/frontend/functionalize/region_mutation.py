"""What a branch or loop writes to becomes a result of it, which the graph around writes back."""

from __future__ import annotations

import operator

import torch
from torch import fx

from pipeline.frontend.functionalize.higher_order_call import RegionCall, at_end
from pipeline.frontend.functionalize.region_aliases import WRITES_BACK, is_readable, possible_roots, refusal, value_of
from pipeline.frontend.functionalize.schema_aliases import root, same_tensor, written

aten = torch.ops.aten

_CLONE = "clone it before"


def return_writes(call: RegionCall) -> None:
    """cond(p, {x.add_(1)}, {}, x)  →  y = cond(p, {clone(x).add_(1)}, {clone(x)}, x); x.copy_(y); loops carry y."""
    captures_first = sorted(_written_operands(call), key=lambda number: (number < call.fixed, number))
    for number in captures_first:  # what is carried from now on takes numbers in front of other captures
        _check_write(call, number)
        value = call.operands[number]
        if number < call.fixed:
            _write_to_carried(call, number)
            continue
        if call.kind == "while_loop":
            call.carry(number)
            number = call.fixed - 1
        for module in call.modules[1:] if call.kind == "while_loop" else call.modules:
            clone = _clone_input(call, module, number)  # first: a result may be that input
            call.set_outputs(module, [*call.outputs(module), clone])
        _write_back(call, value, call.add_result(value.meta["val"].clone()))


def _write_to_carried(call: RegionCall, number: int) -> None:
    """while_loop(c, {h.add_(1); h}, (x,))  →  y = while_loop(c, {clone(h).add_(1)}, (x,)); x.copy_(y).

    Where the body hands on another tensor than `h`, only the first round writes to `x`: what is in it is carried too.
    """
    body = call.modules[1]
    value, handed_on = call.operands[number], call.outputs(body)[number]
    place = call.placeholders(body)[number]
    is_kept, is_new = same_tensor(handed_on) is place, place not in possible_roots(handed_on)
    clone = _clone_input(call, body, number)
    nodes = list(call.node.graph.nodes)
    if not is_readable(value_of(root(value)), nodes[nodes.index(call.node) + 1 :]):
        return
    if is_kept:
        _write_back(call, value, number)
    elif is_new:
        _write_back(call, value, _carry_first_write(call, value, clone))
    else:
        raise refusal(call.node, f"a loop writes in place to a tensor that it gives up in some rounds only; {_CLONE}")


def _carry_first_write(call: RegionCall, value: fx.Node, written_to: fx.Node) -> int:
    """Carries what is in the memory of `value`, which the first round writes to; gives the number of that result."""
    graph = call.node.graph
    with graph.inserting_before(call.node):
        memory = graph.call_function(aten.clone.default, (value,))
        true = graph.call_function(aten.full.default, ([], True), {"dtype": torch.bool})
    memory.meta = dict(value.meta)
    with value.meta["val"].fake_mode:
        true.meta["val"] = torch.full([], True, dtype=torch.bool)
    for operand in (memory, true):
        call.carry(call.add_capture(operand))
    for module in call.modules[1:]:
        before, is_first = call.placeholders(module)[call.fixed - 2 : call.fixed]
        with at_end(module.graph):
            after = module.graph.call_function(aten.where.self, (is_first, written_to, before))
            false = module.graph.call_function(aten.full.default, ([], False), {"dtype": torch.bool})
        after.meta, false.meta = dict(value.meta), dict(true.meta)
        call.set_outputs(module, [*call.outputs(module), after, false])
    result = call.add_result(value.meta["val"].clone())
    call.add_result(true.meta["val"].clone())
    return result


def _write_back(call: RegionCall, value: fx.Node, result: int) -> None:
    """value.copy_(call[result]), right behind the call."""
    with call.node.graph.inserting_after(call.node):
        new = call.node.graph.call_function(operator.getitem, (call.node, result))
    with call.node.graph.inserting_after(new):
        back = call.node.graph.call_function(aten.copy_.default, (value, new))
    new.meta, back.meta = dict(value.meta), {**value.meta, WRITES_BACK: True}


def _written_operands(call: RegionCall) -> set[int]:
    """The numbers of the operands that one of the graphs writes to."""
    numbers = set()
    for module in call.modules:
        places = {node: number for number, node in enumerate(call.placeholders(module))}
        bases = {root(value) for node in module.graph.nodes for value in written(node)}
        numbers |= {places[base] for base in bases if base in places}
    return numbers


def _check_write(call: RegionCall, number: int) -> None:
    """Refuses a write that this file cannot make a result of."""
    if call.kind in ("scan", "map_impl"):
        raise refusal(call.node, f"{call.kind.removesuffix('_impl')} writes to what it is given; return it instead")
    if call.kind != "while_loop":
        return
    condition, body = call.modules
    place = call.placeholders(condition)[number]
    if any(root(value) is place for node in condition.graph.nodes for value in written(node)):
        raise refusal(call.node, "the condition of a loop writes to a tensor; write in the loop's body")
    place = call.placeholders(body)[number]
    outputs = enumerate(call.outputs(body))
    moved = any(place in possible_roots(value) and result != number for result, value in outputs)
    others = call.operands if number < call.fixed else call.operands[: call.fixed]
    bases = possible_roots(call.operands[number])
    shared = any(bases & possible_roots(other) for n, other in enumerate(others) if n != number)
    if moved or shared:
        raise refusal(call.node, f"a loop writes in place to a tensor that it has under another name too; {_CLONE}")


def _clone_input(call: RegionCall, module: fx.GraphModule, number: int) -> fx.Node:
    """Has the graph work on a copy of an input; gives the copy."""
    placeholders = call.placeholders(module)
    value = placeholders[number]
    with module.graph.inserting_after(placeholders[-1]):
        clone = module.graph.call_function(aten.clone.default, (value,))
    clone.meta = dict(value.meta)
    value.replace_all_uses_with(clone, delete_user_cb=lambda user: user is not clone)
    return clone
