"""Forward keeps what is dear to compute again, and backward computes the rest: torch's partition by min-cut."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import fx
from torch._functorch.partitioners import min_cut_rematerialization_partition, must_recompute
from torch.fx.experimental.proxy_tensor import is_sym_node
from torch.utils.checkpoint import CheckpointPolicy

from pipeline.frontend.decompositions import COPIED_VIEWS, decomposition_table
from pipeline.frontend.gradients.kept_bases import keep_bases
from pipeline.frontend.gradients.kept_layouts import keep_as_in_memory
from pipeline.frontend.gradients.kept_values import keep_what_is_read
from pipeline.frontend.gradients.norms import statistics_in_float32
from pipeline.frontend.gradients.recompute import copy_what_is_written, is_random, keep_inputs

aten = torch.ops.aten

_ATTENTION = aten._scaled_dot_product_flash_attention_for_cpu.default

#: Ops that stay whole until forward and backward are parted, so that what backward keeps of them is what eager keeps.
_WHOLE = (
    _ATTENTION,
    aten._scaled_dot_product_flash_attention_for_cpu_backward.default,
    aten.convolution_backward.default,
)


def joint_table(random: str) -> Mapping[Any, Callable[..., Any]]:
    """What graphs of forward and backward together are taken apart to; `random` as of `decomposition_table`."""
    table = statistics_in_float32(decomposition_table(random))
    return {op: function for op, function in table.items() if op not in (*_WHOLE, *COPIED_VIEWS)}


def activation_partition(
    joint: fx.GraphModule, inputs: Any, *, num_fwd_outputs: int, **options: Any
) -> tuple[fx.GraphModule, fx.GraphModule]:
    """(forward, backward) of a graph of aot_autograd's that computes both, as a `partition_fn` gives them."""
    copy_what_is_written(joint)
    _keep_random_numbers(joint.graph)
    _exchange(joint.graph, _ATTENTION, _attention_without_dropout)
    forward, backward = min_cut_rematerialization_partition(joint, inputs, num_fwd_outputs=num_fwd_outputs, **options)
    for part in (forward, backward):
        _exchange(part.graph, _attention_without_dropout, _ATTENTION)
        part.recompile()
    if _draw_the_same(forward, backward):
        return keep_inputs(joint, num_fwd_outputs)
    keep_bases(forward, backward, num_fwd_outputs)
    keep_what_is_read(forward, backward, num_fwd_outputs)
    keep_as_in_memory(forward, backward, num_fwd_outputs)
    return forward, backward


def _keep_random_numbers(graph: fx.Graph) -> None:
    """What a checkpoint computes again is computed of the numbers that forward has drawn: drawn again, they are others.

    Of these and of what is computed of them alone, a dropout's mask for example, min-cut keeps what is smallest. torch
    itself would keep the generator's state and call an op with it, of which there is no code.
    """
    drawn: set[fx.Node] = set()
    for node in graph.nodes:
        if is_random(node):
            node.meta["recompute"] = CheckpointPolicy.MUST_SAVE
        elif (inputs := _tensors_of(node)) and drawn.issuperset(inputs):
            if must_recompute(node):
                del node.meta["recompute"]
        else:
            continue
        drawn.add(node)


def _draw_the_same(forward: fx.GraphModule, backward: fx.GraphModule) -> bool:
    """Whether backward draws numbers again, which torch's partitioner has it do where it is to keep inputs alone.

    That is what `torch._functorch.config.activation_memory_budget = 0` asks for.
    """
    drawn = [{node.name for node in part.graph.nodes if is_random(node)} for part in (forward, backward)]
    return bool(drawn[0] & drawn[1])


def _tensors_of(node: fx.Node) -> list[fx.Node]:
    """The operands that are tensors, or tuples of them, and no constants."""
    return [operand for operand in node.all_input_nodes if not (is_sym_node(operand) or _is_constant(operand))]


def _is_constant(node: fx.Node) -> bool:
    return node.op != "placeholder" and not node.all_input_nodes and not is_random(node)


def _attention_without_dropout(*args: Any, **kwargs: Any) -> Any:
    """torch's attention for CPUs, which draws no numbers.

    The partitioner takes the op itself for one that does, by its tag, and would compute it again with the generator's
    state of forward.
    """
    return _ATTENTION(*args, **kwargs)


def _exchange(graph: fx.Graph, before: Any, after: Any) -> None:
    """Has nodes that a checkpoint computes again call `after` in place of `before`."""
    for node in graph.find_nodes(op="call_function", target=before):
        if must_recompute(node):
            node.target = after
