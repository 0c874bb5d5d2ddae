"""Takes mutation, sharing of memory and constants out of the graphs of branches and loops.

torch.export leaves these in, and torch cannot functionalize what writes to tensors of the graph around it. What a graph
here writes to becomes an extra result, which the graph around writes back with `copy_`: that torch can functionalize.
Works on graphs in ATen, before decomposition.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram, ExportGraphSignature
from torch.export.graph_signature import InputKind, InputSpec, TensorArgument

from pipeline.errors import CaptureError
from pipeline.frontend.aliasing import root, same_tensor, views, written
from pipeline.frontend.graph_passes import attribute, reserve_names
from pipeline.frontend.importer import source_line
from pipeline.frontend.region_call import RegionCall, regions_of

aten = torch.ops.aten

_CLONE = "clone it before"

#: What `_shared_memory` found, at the call.
_SHARED = "pipeline_shared_memory"

#: Marks a `copy_` that this file made: the original program writes to both values there.
_WRITES_BACK = "pipeline_writes_back"


def purify(module: fx.GraphModule, loops_share: bool = False) -> None:
    """Makes the graphs of all branches and loops in `module` pure, in place.

    Args:
        module: the graph around, in ATen; it may write in place itself.
        loops_share: a loop's results may lie in the memory of its first values, as in TorchScript; those of
            torch.while_loop are copies.

    Raises:
        CaptureError: a write would be seen through a value whose memory is shared in some runs and not in others.
    """
    reserve_names(module.graph)
    for node in list(module.graph.nodes):
        if regions_of(node):
            call = RegionCall(node)
            for inner in call.modules:
                purify(inner, loops_share)
            _lift_constants(call)
            _rebase_captures(call)
            shared = _shared_memory(call, loops_share)
            _return_writes(call)
            _clone_shared_operands(call)
            _clone_shared_results(call)
            _refuse_later_writes(call, shared)
    module.recompile()


def has_regions(module: fx.GraphModule) -> bool:
    """Whether there are branches or loops in the graph."""
    return any(regions_of(node) for node in module.graph.nodes)


def _lift_constants(call: RegionCall) -> None:
    """cond(p, {f(constant)}, {..}, x)  →  cond(p, {f(y)}, {..}, x, y = constant)."""
    for module in call.modules:
        for node in list(module.graph.nodes):
            if node.op != "get_attr" or not isinstance(value := attribute(node), torch.Tensor):
                continue
            around = call.node.graph.owning_module
            name = _free_name(around)
            around.register_buffer(name, value)
            with call.node.graph.inserting_before(call.node):
                constant = call.node.graph.get_attr(name)
            constant.meta = dict(node.meta)
            number = call.add_capture(constant)
            node.replace_all_uses_with(call.placeholders(module)[number])
            module.graph.erase_node(node)
        for name in [name for name, _ in module.named_buffers(recurse=False)]:
            delattr(module, name)


def _free_name(module: fx.GraphModule) -> str:
    number = 0
    while hasattr(module, f"lifted_constant_{number}"):
        number += 1
    return f"lifted_constant_{number}"


def _rebase_captures(call: RegionCall) -> None:
    """cond(p, {f(x, v)}, {..}, x, v = x[0])  →  cond(p, {f(x, x[0])}, {..}, x): writes are seen through both."""
    _merge_captures(call)
    captures = [value for value in call.captures if isinstance(value, fx.Node)]
    roots = [root(value) for value in captures]
    for value, base in zip(captures, roots, strict=True):
        if roots.count(base) > 1 and value is not base:
            _rebase(call, value, base)


def _merge_captures(call: RegionCall) -> None:
    """cond(p, {f(x, y)}, {..}, a, a)  →  cond(p, {f(x, x)}, {..}, a)."""
    for number in reversed(range(len(call.captures))):
        first = next(n for n, value in enumerate(call.captures) if value is call.captures[number])
        if first != number and isinstance(call.captures[number], fx.Node):
            for module in call.modules:
                inputs = call.placeholders(module)
                inputs[call.fixed + number].replace_all_uses_with(inputs[call.fixed + first])
            call.drop_capture(call.fixed + number)


def _rebase(call: RegionCall, value: fx.Node, base: fx.Node) -> None:
    """Takes the captured view `value` of `base` inside, where it is computed from `base`."""
    chain = views(value)
    inputs = [same_tensor(node) for view in chain for node in view.all_input_nodes]
    numbers = {node: call.capture(node) for node in [base, *inputs] if node not in chain}
    number = call.captures.index(value) + call.fixed
    for module in call.modules:
        placeholders = call.placeholders(module)
        known = {node: placeholders[place] for node, place in numbers.items()}
        last = placeholders[-1]
        for view in chain:
            with module.graph.inserting_after(last):
                last = known[view] = module.graph.node_copy(view, lambda node, known=known: known[same_tensor(node)])
        placeholders[number].replace_all_uses_with(known[chain[-1] if chain else base])
    call.drop_capture(number)


def _shared_memory(call: RegionCall, loops_share: bool) -> set[tuple[int, Any]]:
    """(result, value of the graph around or number of another result) for those that may lie in one memory."""
    pairs: set[tuple[int, Any]] = set()
    for module in call.modules[1:] if call.kind == "while_loop" else call.modules:
        operands = dict(zip(call.placeholders(module), call.operands, strict=True))
        roots = [_possible_roots(value) for value in call.outputs(module)]
        for number, bases in enumerate(roots):
            pairs.update((number, base) for value in bases & operands.keys() for base in _possible_roots(operands[value]))
            pairs.update((number, other) for other in range(number) if bases & roots[other])
    if call.kind == "while_loop" and loops_share:
        first = enumerate(call.operands[: call.fixed])
        pairs.update((number, base) for number, value in first for base in _possible_roots(value))
    call.node.meta[_SHARED] = pairs
    return pairs


def _possible_roots(value: Any) -> set[fx.Node]:
    """The values in whose memory `value` may lie in the original program."""
    if not isinstance(value, fx.Node):
        return set()
    found = {root(value)}
    for base in list(found):
        if base.target is operator.getitem and regions_of(base.args[0]):
            pairs = base.args[0].meta.get(_SHARED, ())
            found |= {other for number, other in pairs if number == base.args[1] and isinstance(other, fx.Node)}
    return found


def _return_writes(call: RegionCall) -> None:
    """cond(p, {x.add_(1)}, {}, x)  →  y = cond(p, {clone(x).add_(1)}, {clone(x)}, x); x.copy_(y); loops carry y."""
    for number in sorted(_written_operands(call)):
        _check_write(call, number)
        value = call.operands[number]
        if number < call.fixed:
            _write_to_carried(call, number)
            continue
        if call.kind == "while_loop":
            call.carry(number)
            number = call.fixed - 1
        for module in call.modules[1:] if call.kind == "while_loop" else call.modules:
            call.set_outputs(module, [*call.outputs(module), _clone_input(call, module, number)])
        _write_back(call, value, call.add_result(value.meta["val"].clone()))


def _write_to_carried(call: RegionCall, number: int) -> None:
    """while_loop(c, {h.add_(1); h}, (x,))  →  y = while_loop(c, {clone(h).add_(1)}, (x,)); x.copy_(y).

    Where the body hands on another tensor than `h`, only the first round writes to `x`: what is in it is carried too.
    """
    body = call.modules[1]
    value, handed_on = call.operands[number], call.outputs(body)[number]
    place = call.placeholders(body)[number]
    is_kept, is_new = same_tensor(handed_on) is place, place not in _possible_roots(handed_on)
    clone = _clone_input(call, body, number)
    nodes = list(call.node.graph.nodes)
    if not _is_readable(_value(root(value)), nodes[nodes.index(call.node) + 1 :]):
        return
    if is_kept:
        _write_back(call, value, number)
    elif is_new:
        _write_back(call, value, _carry_first_write(call, value, clone))
    else:
        raise _refusal(call.node, f"a loop writes in place to a tensor that it gives up in some rounds only; {_CLONE}")


def _carry_first_write(call: RegionCall, value: fx.Node, written_to: fx.Node) -> int:
    """Carries what is in the memory of `value`, which the body writes to in its first round; the number of that result."""
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
        with _at_end(module.graph):
            after = module.graph.call_function(aten.where.self, (is_first, written_to, before))
            false = module.graph.call_function(aten.full.default, ([], False), {"dtype": torch.bool})
        after.meta, false.meta = dict(value.meta), dict(true.meta)
        call.set_outputs(module, [*call.outputs(module), after, false])
    result = call.add_result(value.meta["val"].clone())
    call.add_result(true.meta["val"].clone())
    return result


def _at_end(graph: fx.Graph) -> Any:
    return graph.inserting_before(next(node for node in graph.nodes if node.op == "output"))


def _write_back(call: RegionCall, value: fx.Node, result: int) -> None:
    """value.copy_(call[result]), right behind the call."""
    with call.node.graph.inserting_after(call.node):
        new = call.node.graph.call_function(operator.getitem, (call.node, result))
    with call.node.graph.inserting_after(new):
        back = call.node.graph.call_function(aten.copy_.default, (value, new))
    new.meta, back.meta = dict(value.meta), {**value.meta, _WRITES_BACK: True}


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
        raise _refusal(call.node, f"{call.kind.removesuffix('_impl')} writes to what it is given; return it instead")
    if call.kind != "while_loop":
        return
    condition, body = call.modules
    place = call.placeholders(condition)[number]
    if any(root(value) is place for node in condition.graph.nodes for value in written(node)):
        raise _refusal(call.node, "the condition of a loop writes to a tensor; write in the loop's body")
    place = call.placeholders(body)[number]
    outputs = enumerate(call.outputs(body))
    moved = any(place in _possible_roots(value) and result != number for result, value in outputs)
    others = call.operands if number < call.fixed else call.operands[: call.fixed]
    bases = _possible_roots(call.operands[number])
    shared = any(bases & _possible_roots(other) for n, other in enumerate(others) if n != number)
    if moved or shared:
        raise _refusal(
            call.node, f"a loop writes in place to a tensor that it has under another name too; {_CLONE}"
        )


def _clone_input(call: RegionCall, module: fx.GraphModule, number: int) -> fx.Node:
    """Has the graph work on a copy of an input; gives the copy."""
    placeholders = call.placeholders(module)
    value = placeholders[number]
    with module.graph.inserting_after(placeholders[-1]):
        clone = module.graph.call_function(aten.clone.default, (value,))
    clone.meta = dict(value.meta)
    value.replace_all_uses_with(clone, delete_user_cb=lambda user: user is not clone)
    return clone


def _clone_shared_operands(call: RegionCall) -> None:
    """while_loop(c, f, (x, x), (x,))  →  while_loop(c, f, (x, clone(x)), (clone(x),)): torch wants no two in one memory."""
    seen: set[fx.Node] = set()
    for number, value in enumerate(call.operands):
        if not isinstance(value, fx.Node) or not isinstance(value.meta.get("val"), torch.Tensor):
            continue
        if root(value) in seen:
            with call.node.graph.inserting_before(call.node):
                clone = call.node.graph.call_function(aten.clone.default, (value,))
            clone.meta = dict(value.meta)
            call.set_operand(number, clone)
        seen.add(root(value))


def _clone_shared_results(call: RegionCall) -> None:
    """{return x, y, y}  →  {return clone(x), y, clone(y)}, where x is an input."""
    for module in call.modules:
        seen: set[fx.Node] = set(call.placeholders(module))
        results = call.outputs(module)
        for number, value in enumerate(results):
            if not isinstance(value, fx.Node) or not isinstance(value.meta.get("val"), torch.Tensor):
                continue
            if root(value) in seen:
                with _at_end(module.graph):
                    results[number] = module.graph.call_function(aten.clone.default, (value,))
                results[number].meta = dict(value.meta)
            seen.add(root(value))
        call.set_outputs(module, results)


def _refuse_later_writes(call: RegionCall, shared: set[tuple[int, Any]]) -> None:
    """Refuses a write behind the call to one of two values that shared memory, if the other can be read after it."""
    nodes = list(call.node.graph.nodes)
    following = nodes[nodes.index(call.node) + 1 :]
    for number, other in shared:
        result = call.node, number
        partner = (call.node, other) if isinstance(other, int) else _value(other)
        for place, node in enumerate(following):
            if _WRITES_BACK in node.meta:
                continue
            bases = [_value(root(value)) for value in written(node)]
            for one, another in ((result, partner), (partner, result)):
                if one in bases and _is_readable(another, following[place + 1 :]):
                    raise _refusal(node, _MAY_SHARE)


_MAY_SHARE = (
    "this writes in place to a tensor that is, or is not, one with the result of a branch or loop, which depends on the "
    f"run; {_CLONE}"
)


def _value(node: fx.Node) -> Any:
    """What tells values apart: the node, or (call, number) for a result of a call with regions."""
    if node.target is operator.getitem and regions_of(node.args[0]):
        return node.args[0], node.args[1]
    return node


def _is_readable(value: Any, nodes: Sequence[fx.Node]) -> bool:
    """Whether one of the nodes reads the value, or the caller can."""
    is_input = isinstance(value, fx.Node) and value.op == "placeholder"
    return is_input or any(_value(root(one)) == value for node in nodes for one in node.all_input_nodes)


def _refusal(node: fx.Node, reason: str) -> CaptureError:
    line = source_line(node)
    return CaptureError(f"{line[0]}:{line[1]}: {reason}" if line else reason)


def purified(exported: ExportedProgram, loops_share: bool = False) -> ExportedProgram:
    """The program with pure branches and loops, see `purify`; itself if it has none."""
    if not has_regions(exported.graph_module):
        return exported
    module = copy.deepcopy(exported.graph_module)
    purify(module, loops_share)
    signature = copy.deepcopy(exported.graph_signature)
    constants = dict(exported.constants)
    _make_inputs_of_constants(module, signature, constants)
    return exported._update(module, signature, constants=constants)


def _make_inputs_of_constants(
    module: fx.GraphModule, signature: ExportGraphSignature, constants: dict[str, Any]
) -> None:
    """ExportedPrograms take their constants as inputs: placeholders in front of the user's, named in the signature."""
    for node in list(module.graph.nodes):
        if node.op != "get_attr" or not isinstance(value := attribute(node), torch.Tensor):
            continue
        name = str(node.target)
        place = len(signature.input_specs) - len(signature.user_inputs)
        inputs = [other for other in module.graph.nodes if other.op == "placeholder"]
        with module.graph.inserting_before((inputs or list(module.graph.nodes))[min(place, max(len(inputs) - 1, 0))]):
            constant = module.graph.placeholder(f"c_{name}")
        constant.meta = dict(node.meta)
        node.replace_all_uses_with(constant)
        module.graph.erase_node(node)
        delattr(module, name)
        spec = InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(constant.name), name)
        signature.input_specs.insert(place, spec)
        constants[name] = value
    module.recompile()
