"""What a model may be."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from api_models import Linear
from torch import nn

import pipeline
from pipeline import CaptureError, OptionError, PipelineError


def test_exported_program():
    model, x = Linear().requires_grad_(False), torch.randn(2, 4)
    exported = torch.export.export(model, (x,))
    torch.testing.assert_close(pipeline.compile(exported)(x), model(x))


def test_exported_program_takes_no_dynamic_shapes():
    exported = torch.export.export(nn.ReLU(), (torch.ones(2),))
    with pytest.raises(OptionError, match="dynamic_shapes"):
        pipeline.compile(exported, dynamic_shapes=({0: torch.export.Dim("n")},))


@pytest.mark.parametrize("as_text", [True, False])
def test_path_of_an_archive(tmp_path, as_text):
    model, x = Linear().requires_grad_(False), torch.randn(2, 4)
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(model, (x,)), path)
    torch.testing.assert_close(pipeline.compile(str(path) if as_text else path)(x), model(x))


def test_archive_that_is_none(tmp_path):
    (tmp_path / "broken.pt2").write_bytes(b"nothing")
    with pytest.raises(CaptureError, match="broken.pt2: not a .pt2 archive"):
        pipeline.compile(tmp_path / "broken.pt2")
    with pytest.raises(PipelineError, match="absent.pt2"):
        pipeline.compile(tmp_path / "absent.pt2")


def test_script_module():
    model, x = Linear().eval().requires_grad_(False), torch.randn(2, 4)
    torch.testing.assert_close(pipeline.compile(torch.jit.script(model), (x,))(x), model(x))


def test_script_module_by_keyword():
    class Shift(nn.Module):
        def forward(self, x, times: int = 2, *, shift: torch.Tensor):
            return x * times + shift

    x, shift = torch.randn(4), torch.randn(4)
    exe = pipeline.compile(torch.jit.script(Shift()), (x,), {"shift": shift})
    for result in (exe(x, shift), exe(x, shift=shift), exe(x, times=2, shift=shift)):
        torch.testing.assert_close(result, x * 2 + shift)


def test_capture_through_script():
    model, x = Linear().eval().requires_grad_(False), torch.randn(2, 4)
    torch.testing.assert_close(pipeline.compile(model, (x,), capture="script")(x), model(x))


MLIR = """
func.func @main(%a: tensor<?xf32>, %b: tensor<2xi32>) -> (tensor<?xf32>, tensor<2xi32>) {
  %c = math.exp %a : tensor<?xf32>
  %d = arith.addi %b, %b : tensor<2xi32>
  return %c, %d : tensor<?xf32>, tensor<2xi32>
}
"""


def mlir_models(folder):
    from pipeline.mlir import context, parse

    (folder / "model.mlir").write_text(MLIR)
    module = parse(MLIR, context())
    return {
        "text": MLIR,
        "path": folder / "model.mlir",
        "str": str(folder / "model.mlir"),
        "module": module,
        "op": module.operation,
    }


@pytest.mark.parametrize("form", ["text", "path", "str", "module", "op"])
def test_mlir(tmp_path, form):
    exe = pipeline.compile(mlir_models(tmp_path)[form])
    for numbers in (np.ones(3, np.float32), np.ones(1, np.float32)):
        exponential, doubled = exe(numbers, np.array([1, 2], np.int32))
        np.testing.assert_allclose(exponential, np.exp(numbers), rtol=1e-6)
        np.testing.assert_array_equal(doubled, [2, 4])


def test_the_linalg_of_a_model_is_a_model(linear):
    model, exe = linear
    again = pipeline.compile(exe.ir("linalg"))
    x = torch.randn(2, 4)
    torch.testing.assert_close(again(model.linear.weight, model.linear.bias, x), model(x))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func.func @main(", "not valid MLIR"),
        ("func.func @other() { return }", "no function @main"),
        ("func.func @main(%a: memref<2xf32>) { return }", "argument arg0 of @main"),
        ("func.func @main(%a: tensor<2xcomplex<f32>>) { return }", "complex"),
        ("func.func @main(%a: f32) -> f32 { return %a : f32 }", "arg0"),
        ("not MLIR at all", "not valid MLIR"),
        ("", "no function @main"),
    ],
)
def test_wrong_mlir(text, message):
    with pytest.raises(PipelineError, match=message):
        pipeline.compile(text)


def test_mlir_path_that_is_absent(tmp_path):
    with pytest.raises(PipelineError, match="absent.mlir: cannot be read"):
        pipeline.compile(tmp_path / "absent.mlir")


@pytest.mark.parametrize("model", [None, 3, object(), {}, torch.ones(2)])
def test_what_is_no_model(model):
    with pytest.raises(PipelineError, match="model: expected an nn.Module"):
        pipeline.compile(model, (torch.ones(2),))


@pytest.mark.parametrize("args", [None, [torch.ones(2)], {"x": torch.ones(2)}, 3])
def test_args_must_be_a_tuple(args):
    with pytest.raises(PipelineError, match="args"):
        pipeline.compile(nn.ReLU(), args)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.ones(2, dtype=torch.complex32), "argument x: complex32"),
        (torch.ones(2).to_sparse(), "sparse"),
        (torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.quint8), "quantized"),
        (torch.ones(2, device="meta"), None),
    ],
)
def test_example_arguments_of_other_kinds(x, message):
    class Clone(nn.Module):
        def forward(self, x):
            return x.clone()

    if message is None:
        torch.testing.assert_close(pipeline.compile(Clone(), (x,))(torch.ones(2)), torch.ones(2))
        return
    with pytest.raises(PipelineError, match=message):
        pipeline.compile(Clone(), (x,))
