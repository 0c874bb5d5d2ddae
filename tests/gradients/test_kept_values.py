"""What forward keeps for backward."""

from __future__ import annotations

import torch
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx

from pipeline.frontend.gradients.kept_values import keep_what_is_read


def test_a_size_that_is_kept_is_not_taken_for_a_tensor():
    """As the length of a text in blocks, of which both graphs make a tensor."""

    def forward(x):
        rows = x.size(0) * 2
        return torch.full([rows], 1.0) + x.sum(), rows

    module = make_fx(forward, tracing_mode="symbolic")(torch.randn(5, 3))
    results = module.graph.output_node().args[0]
    size = results[1]
    assert isinstance(size, fx.Node) and isinstance(size.meta["val"], torch.SymInt)
    (full,) = (node for node in size.users if node.op == "call_function")
    graph = fx.Graph()
    taken = graph.placeholder(size.name)
    taken.meta = dict(size.meta)
    made = graph.node_copy(full, {size: taken}.__getitem__)
    graph.output((made,))
    backward = fx.GraphModule(torch.nn.Module(), graph)
    keep_what_is_read(module, backward, results=1)
    assert [node.name for node in backward.graph.find_nodes(op="placeholder")] == [size.name]
    assert module(torch.randn(7, 2))[1] == 14
