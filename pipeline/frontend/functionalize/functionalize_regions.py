"""Takes mutation, sharing of memory and constants out of the graphs of branches and loops.

torch.export leaves these in, and torch cannot functionalize what writes to tensors of the graph around it. What a graph
here writes to becomes an extra result, which the graph around writes back with `copy_`: that torch can functionalize.
Works on graphs in ATen, before decomposition.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram, ExportGraphSignature
from torch.export.graph_signature import InputKind, InputSpec, TensorArgument

from pipeline.frontend.functionalize.higher_order_call import RegionCall, at_end, regions_of
from pipeline.frontend.functionalize.idle_dropouts import copy_of_graph
from pipeline.frontend.functionalize.region_aliases import refuse_later_writes, shared_memory
from pipeline.frontend.functionalize.region_mutation import return_writes
from pipeline.frontend.functionalize.schema_aliases import root, same_tensor, views
from pipeline.frontend.fx_passes.simplify import attribute, reserve_names

aten = torch.ops.aten


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
            shared = shared_memory(call, loops_share)
            return_writes(call)
            _clone_shared_operands(call)
            _clone_shared_results(call)
            refuse_later_writes(call, shared)
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


def _clone_shared_operands(call: RegionCall) -> None:
    """while_loop(c, f, (x, x), (x,))  →  while_loop(c, f, (x, clone(x)), (clone(x),)), since torch wants it so."""
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
                with at_end(module.graph):
                    results[number] = module.graph.call_function(aten.clone.default, (value,))
                results[number].meta = dict(value.meta)
            seen.add(root(value))
        call.set_outputs(module, results)


def purified(exported: ExportedProgram, loops_share: bool = False) -> ExportedProgram:
    """The program with pure branches and loops, see `purify`; itself if it has none."""
    if not has_regions(exported.graph_module):
        return exported
    module = copy_of_graph(exported)
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
