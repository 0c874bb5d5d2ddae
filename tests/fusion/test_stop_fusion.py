"""`pipeline.stop_fusion`: identity for torch, a barrier for fusion, nothing in the code."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from fusion.support import compiled, groups
from torch import nn

import pipeline


def chain(x, stop):
    y = torch.relu(x)
    z = pipeline.stop_fusion(y) if stop else y
    return z.exp() * 2


class Chain(nn.Module):
    def __init__(self, stop=True):
        super().__init__()
        self.stop = stop

    def forward(self, x):
        return chain(x, self.stop)


DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int32, torch.int64, torch.uint8]


def test_it_stops_fusion_and_only_there():
    x = torch.randn(3, 5)
    assert [label for label, _ in groups(compiled(Chain(), x))] == ["relu", "fused_exp_mul"]
    assert [label for label, _ in groups(compiled(Chain(False), x))] == ["fused_relu_exp_mul"]


def test_the_remark_names_the_barrier():
    exe = compiled(Chain(), torch.randn(4))
    remarks = [remark for remark in exe.remarks if remark.key == "barrier"]
    assert {remark.pass_name for remark in remarks} == {"fuse-elementwise", "form-groups"}
    for remark in remarks:
        assert remark.edge[0].label == "relu"
        assert "stop_fusion" in remark.change


def test_it_leaves_no_code():
    exe = compiled(Chain(), torch.randn(3, 5))
    assert "fusion.barrier" in exe.ir("linalg")
    assert "barrier" not in exe.ir("fused")
    assert len(exe.kernels) == 2
    assert "memref.copy" not in exe.ir("kernels")


@pytest.mark.parametrize("dtype", [*DTYPES, torch.bool], ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (7, 5)], ids=str)
def test_dtypes_and_shapes(dtype, shape):
    class Twice(nn.Module):
        def forward(self, x):
            return pipeline.stop_fusion(x.logical_not()).logical_not(), pipeline.stop_fusion(x)

    compiled(Twice(), (torch.randn(shape) * 4).to(dtype))


def test_eager_returns_the_tensor_itself_and_gradients_pass():
    x = torch.randn(3, requires_grad=True)
    assert pipeline.stop_fusion(x) is x
    gradient = torch.autograd.grad(chain(x, True).sum(), x)[0]
    torch.testing.assert_close(gradient, torch.autograd.grad(chain(x, False).sum(), x)[0])
    op = torch.ops.pipeline.stop_fusion
    torch.testing.assert_close(torch.autograd.grad((op(x) * x).sum(), x)[0], 2 * x)
    torch.testing.assert_close(torch.vmap(op)(x.detach()), x.detach())
    torch.library.opcheck(torch.ops.pipeline.stop_fusion.default, (torch.randn(3, 4),))


def test_torch_compile_keeps_it():
    torch._dynamo.reset()
    found = []

    def look(graph, inputs):
        found.extend(str(node.target) for node in graph.graph.nodes)
        return graph

    x = torch.randn(6)
    torch.testing.assert_close(torch.compile(Chain(), backend=look)(x), Chain()(x))
    assert any("stop_fusion" in target for target in found)
    with torch.no_grad():
        torch.testing.assert_close(torch.compile(Chain(), backend="pipeline", fullgraph=True)(x), Chain()(x))


def test_torchscript_keeps_it():
    class Scripted(nn.Module):
        def forward(self, x):
            return pipeline.stop_fusion(torch.relu(x)).exp()

    x = torch.randn(6)
    for model, options in (
        (Scripted(), {"capture": "script"}),
        (torch.jit.script(Scripted()), {}),
        (torch.jit.trace(Scripted(), (x,)), {}),
    ):
        assert [label for label, _ in groups(compiled(model, x, **options))] == ["relu", "exp"]


def test_dynamic_shapes():
    exe = pipeline.compile(Chain(), (torch.randn(4, 5),), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))
    for rows in (1, 3, 8):
        x = torch.randn(rows, 5)
        torch.testing.assert_close(exe(x), Chain()(x))
    assert [label for label, _ in groups(exe)] == ["relu", "fused_exp_mul"]


def test_in_branches_on_weights_and_results():
    class Branches(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(5), requires_grad=False)

        def forward(self, c, x):
            def yes(x):
                return pipeline.stop_fusion(x.exp()) + pipeline.stop_fusion(self.weight.sin())

            def no(x):
                return pipeline.stop_fusion(x)

            return pipeline.stop_fusion(torch.cond(c, yes, no, (x,)))

    for c in (True, False):
        compiled(Branches(), torch.tensor(c), torch.randn(5))


def test_between_a_product_and_its_activation():
    class Net(nn.Module):
        def __init__(self, stop):
            super().__init__()
            self.linear, self.stop = nn.Linear(4, 6), stop

        def forward(self, x):
            y = self.linear(x)
            return torch.relu(pipeline.stop_fusion(y) if self.stop else y)

    x = torch.randn(3, 4)
    stopped = compiled(Net(True).requires_grad_(False), x)
    assert not any("add" in kernel.name and "relu" in kernel.name for kernel in stopped.kernels)
    free = compiled(Net(False).requires_grad_(False), x)
    assert any("add" in kernel.name and "relu" in kernel.name for kernel in free.kernels)


def test_importing_pipeline_still_needs_no_torch():
    code = (
        "import sys, pipeline; assert 'torch' not in sys.modules; pipeline.stop_fusion; assert 'torch' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    with pytest.raises(AttributeError, match="no attribute 'stop_fusio'"):
        assert not pipeline.stop_fusio
