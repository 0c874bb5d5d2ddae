"""Groups that become emitted MLIR, or an intrinsic with their operands and attributes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from function_model import Function
from fusion.support import compiled
from fusion.user_functions import X, labels, run
from torch import nn

import pipeline
from pipeline import PipelineError, fuse_into
from pipeline.fusions import Callback, Emitter, External, Intrinsic
from pipeline.mlir import linalg, tensor


def test_emitted_mlir_in_a_branch():
    seen = []

    def emit(operands, types, ops):
        seen.extend(op.words for op in ops)
        (x,), (kind,) = operands, types
        empty = tensor.EmptyOp(kind.shape, kind.element_type).result
        tanh = linalg.tanh(x, outs=[empty])
        return [linalg.mul(tanh, tanh, outs=[tensor.EmptyOp(kind.shape, kind.element_type).result])]

    mine = fuse_into(["exp", "sin"], name="mine", becomes=Emitter(emit))

    def branches(c, x):
        return torch.cond(c, lambda x: x.exp().sin() + 1, lambda x: x * 2, (x,))

    for c in (True, False):
        exe = pipeline.compile(Function(branches), (torch.tensor(c), X), fusions=[mine])
        torch.testing.assert_close(exe(torch.tensor(True), X), X.tanh() ** 2 + 1)
        torch.testing.assert_close(exe(torch.tensor(False), X), X * 2)
    assert seen[:2] == [("exp",), ("sin",)]
    assert "mine_0" in {kernel.name for kernel in exe.kernels}


@pytest.mark.parametrize(
    ("emit", "message"),
    [
        (
            lambda operands, types, ops: [],
            r"the emitter of mine returned values of types \(\), expected \(tensor<6xf32>\)",
        ),
        (lambda operands, types, ops: 1 / 0, "the emitter of mine failed: ZeroDivisionError: division by zero"),
        (
            lambda operands, types, ops: [ops[-1].op.results[0]],
            "the emitter of mine uses linalg.generic, an op of the body",
        ),
    ],
)
def test_emitters_that_fail(emit, message):
    with pytest.raises(PipelineError, match=message):
        pipeline.compile(
            Function(lambda x: x.exp()), (X,), fusions=[fuse_into(["exp"], name="mine", becomes=Emitter(emit))]
        )


class Layer(nn.Module):
    def __init__(self, activation):
        super().__init__()
        torch.manual_seed(0)
        self.linear, self.activation = nn.Linear(4, 5), activation

    def forward(self, x):
        return self.activation(self.linear(x)).exp()


STEPS = ("matmul", "add", ("relu", "neg"))


@pytest.mark.parametrize("activation", [torch.relu, torch.neg], ids=["relu", "neg"])
def test_an_intrinsic_of_a_library(library, activation):
    gemm = Intrinsic(STEPS, External("gemm", library / "gemm.so"))
    layer = Layer(activation).requires_grad_(False)
    exe = compiled(layer, torch.randn(3, 4), fusions=[fuse_into(None, name="npu_gemm", becomes=gemm)])
    assert "npu_gemm" in labels(exe)


@pytest.mark.parametrize("activation", [torch.relu, torch.neg], ids=["relu", "neg"])
def test_an_intrinsic_gets_operands_and_attributes_in_branches_too(activation):
    calls = []

    def gemm(a, b, bias, *, steps):
        calls.append((a.shape, b.shape, bias.shape, steps))
        y = a @ b + bias
        return np.maximum(y, 0) if steps[2] == "relu" else -y

    class Branches(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = Layer(activation)

        def forward(self, c, x):
            return torch.cond(c, lambda x: self.layer(x), lambda x: self.layer(x * 2), (x,))

    fusion = fuse_into(None, name="npu_gemm", becomes=Intrinsic(STEPS, Callback(gemm)))
    exe = compiled(Branches().requires_grad_(False), torch.tensor(True), torch.randn(3, 4), fusions=[fusion])
    assert labels(exe).count("npu_gemm") == 2
    assert calls == [((3, 4), (4, 5), (5,), ("matmul", "add", activation.__name__))]


def test_chains_that_are_no_intrinsic():
    fusion = fuse_into(None, name="npu_gemm", becomes=Intrinsic(STEPS, Callback(lambda *a, steps: None)))

    def keys(exe):
        return {remark.key for remark in exe.remarks if remark.pass_name == "fuse-into"}

    x = torch.randn(3, 4)
    other = compiled(Layer(torch.tanh).requires_grad_(False), x, fusions=[fusion])
    assert "npu_gemm" not in labels(other) and keys(other) == {"rule"}
    weight, bias = torch.randn(4, 5), torch.randn(5)

    def twice(x):
        y = x @ weight + bias
        return y.relu(), y.exp()

    shared = run(twice, x, fusions=[fusion])
    assert "npu_gemm" not in labels(shared) and keys(shared) == {"multi-use"}
    stopped = run(lambda x: pipeline.stop_fusion(x @ weight + bias).relu(), x, fusions=[fusion])
    assert "npu_gemm" not in labels(stopped)


def test_a_product_that_adds_to_something_is_no_intrinsic():
    text = """
    func.func @main(%a: tensor<2x2xf32>, %c: tensor<2x2xf32>) -> tensor<2x2xf32> {
      %0 = linalg.matmul ins(%a, %a : tensor<2x2xf32>, tensor<2x2xf32>) outs(%c : tensor<2x2xf32>) -> tensor<2x2xf32>
      return %0 : tensor<2x2xf32>
    }"""
    fusion = fuse_into(None, name="mm", becomes=Intrinsic(("matmul",), Callback(lambda a, b, steps: a @ b)))
    exe = pipeline.compile(text, fusions=[fusion])
    a, c = torch.randn(2, 2), torch.randn(2, 2)
    torch.testing.assert_close(exe(a, c), a @ a + c)
