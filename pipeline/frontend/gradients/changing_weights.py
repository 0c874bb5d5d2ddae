"""Which weights are worth to be prepared again at each step of training, which writes to all of them."""

from __future__ import annotations

import torch
from torch import fx

aten = torch.ops.aten

#: Ops through which a weight is followed.
_VIEWS = (aten.view.default, aten.expand.default, aten.unsqueeze.default, aten.squeeze.dims, aten.permute.default)


def weights_of_convolutions(graph: fx.GraphModule) -> set[int]:
    """The numbers of the inputs that are weights of convolutions.

    Kernels of convolutions read panels, which are made from a weight in less time than they save within one call;
    products read a weight as it is about as fast.
    """
    placeholders = graph.graph.find_nodes(op="placeholder")
    convolutions = graph.graph.find_nodes(op="call_function", target=aten.convolution.default)
    sources = {_source(convolution.args[1]) for convolution in convolutions}
    return {number for number, node in enumerate(placeholders) if node in sources}


def _source(node: fx.Node) -> fx.Node:
    """The value that a value is a view of."""
    while node.target in _VIEWS:
        node = node.args[0]
    return node
