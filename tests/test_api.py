"""The public API: what models, arguments and results may be, and what an executable tells of itself."""

from __future__ import annotations

import ctypes
import dataclasses
from collections import OrderedDict, namedtuple

import numpy as np
import pytest
import torch
from torch import nn
from transformers.modeling_outputs import BaseModelOutput

import pipeline
from pipeline import CaptureError, OptionError, PipelineError

Pair = namedtuple("Pair", ["first", "second"])
STAGES = ("torch", "linalg", "fused", "kernels", "llvm")


class Calls(nn.Module):
    """A module around a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args, **kwargs):
        return self.function(*args, **kwargs)


class Linear(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x, scale: torch.Tensor | None = None):
        y = torch.relu(self.linear(x))
        return y if scale is None else y * scale


@pytest.fixture(scope="module")
def linear():
    model = Linear().eval().requires_grad_(False)
    return model, pipeline.compile(model, (torch.randn(2, 4),))


def check(function, *args, **kwargs):
    """Compiles, runs, and compares the results with eager's, structure and all; returns them."""
    model = Calls(function)
    result = pipeline.compile(model, args, kwargs)(*args, **kwargs)
    torch.testing.assert_close(result, model(*args, **kwargs))
    return result


# What goes in and comes out keeps its structure.


def test_dict_argument_and_result():
    result = check(lambda batch: {"sum": batch["a"] + batch["b"]}, {"a": torch.ones(3), "b": torch.ones(3)})
    assert type(result) is dict


def test_ordered_dict_result():
    assert type(check(lambda x: OrderedDict(b=x + 1, a=x * 2), torch.ones(3))) is OrderedDict


def test_nested_tuples_and_lists():
    result = check(
        lambda pair, rest: [(pair[0] + rest[0], pair[1]), [rest[1] * 2]], (torch.ones(2),) * 2, [torch.ones(2)] * 2
    )
    assert type(result) is list and type(result[0]) is tuple and type(result[1]) is list


def test_named_tuple():
    result = check(lambda pair: Pair(pair.second - 1, pair.first), Pair(torch.ones(2), torch.zeros(3)))
    assert type(result) is Pair


def test_torch_return_type():
    result = check(lambda x: torch.max(x, 1), torch.randn(3, 4))
    assert type(result) is torch.return_types.max


def test_model_output():
    model = Calls(lambda x: BaseModelOutput(last_hidden_state=x * 2))
    result = pipeline.compile(model, (torch.ones(2),))(torch.ones(2))
    assert type(result) is BaseModelOutput
    assert result.hidden_states is None
    torch.testing.assert_close(result["last_hidden_state"], torch.full((2,), 2.0))


def test_an_unregistered_class_is_refused():
    @dataclasses.dataclass
    class Unknown:
        x: torch.Tensor

    with pytest.raises(PipelineError):
        pipeline.compile(Calls(lambda a: a.x + 1), (Unknown(torch.ones(2)),))


def test_none_leaves():
    result = check(lambda x, nothing, more: (x + 1, nothing, {"none": None}), torch.ones(2), None, [None])
    assert result[1] is None


def test_constant_arguments_and_results():
    model = Calls(lambda x, n, flag, name, f: (x * n if flag else x, n, name, f, True))
    args = (torch.ones(2), 3, True, "cat", 0.5)
    result = pipeline.compile(model, args)(*args)
    torch.testing.assert_close(result[0], torch.full((2,), 3.0))
    assert result[1:] == (3, "cat", 0.5, True)


def test_no_results_and_no_arguments():
    assert pipeline.compile(Calls(lambda x: None), (torch.ones(2),))(torch.ones(2)) is None
    torch.testing.assert_close(pipeline.compile(Calls(lambda: torch.arange(3)), ())(), torch.arange(3))


def test_a_tensor_returned_twice_is_one_tensor():
    def twice(x):
        y = x + 1
        return y, y

    first, second = check(twice, torch.ones(3))
    assert first is second


def test_an_argument_returned_as_it_is_is_the_same_tensor():
    x = torch.ones(3)
    y, same = pipeline.compile(Calls(lambda x: (x + 1, x)), (x,))(x)
    assert same is x
    assert y.data_ptr() != x.data_ptr()


def test_one_tensor_as_two_arguments():
    x = torch.randn(3)
    check(lambda a, b: a * 2 + b, x, x)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_integer_results_keep_their_dtype(dtype):
    assert check(lambda x: (x | x, x.clone()), torch.tensor([0, 1, 100]).to(dtype))[0].dtype is dtype


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_float_results_keep_their_dtype(dtype):
    assert check(lambda x: x * 2 + 1, torch.randn(5).to(dtype)).dtype is dtype


# Arguments by position and by name.


def test_arguments_by_keyword(linear):
    model, exe = linear
    x = torch.randn(2, 4)
    torch.testing.assert_close(exe(x=x), model(x))


def test_compiled_by_keyword_called_by_position():
    model = Linear().requires_grad_(False)
    x, scale = torch.randn(2, 4), torch.randn(3)
    exe = pipeline.compile(model, (x,), {"scale": scale})
    for result in (exe(x, scale), exe(x, scale=scale), exe(scale=scale, x=x)):
        torch.testing.assert_close(result, model(x, scale))


def test_defaults_may_be_left_out_or_given(linear):
    model, exe = linear
    x = torch.randn(2, 4)
    torch.testing.assert_close(exe(x, None), model(x))
    torch.testing.assert_close(exe(x, scale=None), model(x))
    given = pipeline.compile(model, (x, None))
    for result in (given(x), given(x=x), given(x, None), given(x, scale=None)):
        torch.testing.assert_close(result, model(x))
    with pytest.raises(pipeline.ArgumentError, match="argument scale: was not given when the model was compiled"):
        exe(x, torch.ones(3))


def test_exported_program_by_keyword():
    model, x = Linear().requires_grad_(False), torch.randn(2, 4)
    exe = pipeline.compile(torch.export.export(model, (x,), {"scale": torch.ones(3)}))
    torch.testing.assert_close(exe(x=x, scale=torch.ones(3)), model(x))


# Memory.


def non_contiguous():
    x = torch.arange(24.0).reshape(4, 6)
    return {
        "transposed": x.t(),
        "strided": x[::2, ::3],
        "offset": x[1:, 1:],
        "expanded": torch.arange(3.0).expand(4, 3),
        "column": x[:, 2],
        "zero-size": x[:0],
        "zero-size inside": x[:, :0],
        "scalar": x[1, 2],
        "channels last": torch.randn(1, 3, 4, 4).to(memory_format=torch.channels_last),
        "negative": torch._neg_view(x),
    }


@pytest.mark.parametrize("name", list(non_contiguous()))
def test_tensors_that_are_not_row_major(name):
    x = non_contiguous()[name]
    check(lambda x: (x * 2 + 1, x.sum()), x)


def test_overlapping_views_as_two_arguments():
    x = torch.arange(10.0)
    check(lambda a, b: a * b, x[:6], x[4:])


@pytest.mark.parametrize("fast", [True, False])
def test_arguments_are_read_in_place(fast, monkeypatch):
    x = torch.ones(4)
    exe = pipeline.compile(Calls(lambda x: x * 2), (x,))
    owner, name = (exe._fast, "_entry") if fast else (exe, "_main")
    entry, seen = getattr(owner, name), []

    def spy(slots):
        seen.extend((ctypes.c_int64 * exe._layout.slots).from_address(slots))
        entry(slots)

    monkeypatch.setattr(owner, name, spy)
    exe(x) if fast else exe._call((x,), {}, None)
    assert x.data_ptr() in seen


def test_results_are_written_in_place():
    exe = pipeline.compile(Calls(lambda x: (x + 1, x * 2)), (torch.ones(4),))
    out = (torch.empty(4), torch.empty(4))
    places = [tensor.data_ptr() for tensor in out]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.Tensor, "copy_", None)
        result = exe(torch.ones(4), out=out)
    assert result is out
    assert [tensor.data_ptr() for tensor in result] == places
    torch.testing.assert_close(out, (torch.full((4,), 2.0), torch.full((4,), 2.0)))


def test_a_result_is_new_at_every_call(linear):
    _, exe = linear
    first = exe(torch.ones(2, 4))
    kept = first.clone()
    exe(torch.zeros(2, 4))
    torch.testing.assert_close(first, kept)


def test_weights_share_memory_with_the_live_module():
    model = Calls(lambda x: x)
    model.weight = nn.Parameter(torch.ones(3))
    model.function = lambda x: x + model.weight
    exe = pipeline.compile(model, (torch.zeros(3),))
    with torch.no_grad():
        model.weight.fill_(5)
    torch.testing.assert_close(exe(torch.zeros(3)), torch.full((3,), 5.0))


def test_refresh_after_weights_changed():
    model = Linear().requires_grad_(False)
    exe = pipeline.compile(model, (torch.randn(2, 4),))
    model.load_state_dict({"linear.weight": torch.randn(3, 4), "linear.bias": torch.randn(3)})
    exe.refresh()
    x = torch.randn(2, 4)
    torch.testing.assert_close(exe(x), model(x))


def test_refresh_refuses_weights_of_another_shape():
    model = nn.Linear(4, 3).requires_grad_(False)
    exe = pipeline.compile(model, (torch.randn(2, 4),))
    model.bias.data = torch.randn(5)
    with pytest.raises(PipelineError, match=r"weight bias: expected float32\[3\], is now float32\[5\]"):
        exe.refresh()


def test_numpy_arrays_in_and_out(linear):
    model, exe = linear
    x = np.random.default_rng(0).standard_normal((2, 4), np.float32)
    result = exe(x)
    assert isinstance(result, np.ndarray)
    np.testing.assert_allclose(result, model(torch.from_numpy(x)).numpy(), rtol=1e-5)


@pytest.mark.parametrize("array", [np.ones((4, 2), np.float32).T, np.ones((2, 8), np.float32)[:, ::-2]])
def test_numpy_arrays_that_are_not_row_major(linear, array):
    model, exe = linear
    np.testing.assert_allclose(exe(array), model(torch.from_numpy(array.copy())).numpy(), rtol=1e-5)


def test_a_numpy_array_that_is_not_aligned(linear):
    model, exe = linear
    array = np.frombuffer(bytearray(33), np.uint8)[1:].view(np.float32).reshape(2, 4)
    assert not array.flags.aligned
    np.testing.assert_allclose(exe(array), model(torch.zeros(2, 4)).numpy(), rtol=1e-5)


# out=


def test_out_that_is_not_row_major():
    exe = pipeline.compile(Calls(lambda x: x + 1), (torch.ones(2, 3),))
    out = torch.empty(3, 2).t()
    assert exe(torch.ones(2, 3), out=out) is out
    torch.testing.assert_close(out, torch.full((2, 3), 2.0))


def test_out_that_is_an_argument():
    exe = pipeline.compile(Calls(lambda x: x + x.flip(0)), (torch.ones(3),))
    x = torch.arange(3.0)
    exe(x, out=x)
    torch.testing.assert_close(x, torch.full((3,), 2.0))


def test_out_of_dynamic_size():
    exe = pipeline.compile(Calls(lambda x: x + 1), (torch.ones(3),), dynamic_shapes=(({0: torch.export.Dim("n")},),))
    out = torch.empty(5)
    exe(torch.ones(5), out=out)
    torch.testing.assert_close(out, torch.full((5,), 2.0))
    with pytest.raises(PipelineError, match="out"):
        exe(torch.ones(5), out=torch.empty(4))


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (torch.empty(3), r"argument out: expected float32\[4\], got float32\[3\]"),
        (torch.empty(4, dtype=torch.float64), r"argument out: expected float32\[4\], got float64\[4\]"),
        (torch.empty(4, device="meta"), "argument out: expected a dense tensor on cpu, got meta"),
        ((torch.empty(4),), "argument out: expected a tensor float32.4., got tuple"),
        (torch.empty(1).expand(4), "argument out: .* share memory"),
        ([1.0] * 4, "argument out: expected a tensor"),
    ],
)
def test_wrong_out(out, message):
    exe = pipeline.compile(Calls(lambda x: x + 1), (torch.ones(4),))
    with pytest.raises(pipeline.ArgumentError, match=message):
        exe(torch.ones(4), out=out)


def test_out_names_the_leaf():
    exe = pipeline.compile(Calls(lambda x: {"a": x + 1, "b": [x * 2]}), (torch.ones(4),))
    with pytest.raises(
        pipeline.ArgumentError, match=r"argument out\['b'\]\[0\]: expected float32\[4\], got float32\[5\]"
    ):
        exe(torch.ones(4), out={"a": torch.empty(4), "b": [torch.empty(5)]})


def test_two_results_to_one_out_are_refused():
    exe = pipeline.compile(Calls(lambda x: (x + 1, x * 2)), (torch.ones(4),))
    one = torch.empty(4)
    with pytest.raises(pipeline.ArgumentError, match=r"argument out\[1\]: shares memory with out\[0\]"):
        exe(torch.ones(4), out=(one, one))


# What an executable tells of itself.


@pytest.mark.parametrize("stage", STAGES)
def test_ir_of_each_stage(linear, stage):
    from pipeline.mlir import context, parse

    text = linear[1].ir(stage)
    parse(text, context())
    expected = {
        "torch": "torch.aten.linear",
        "linalg": "linalg.matmul",
        "fused": "fusion.group",
        "kernels": "call @fused_matmul_add_relu",
        "llvm": "llvm.func @main",
    }
    assert expected[stage] in text or stage == "torch"


def test_ir_is_whole():
    """A constant of many elements is there with all its elements."""
    table = torch.arange(40)
    model = Calls(lambda x: x + table)
    assert "__elided__" not in pipeline.compile(model, (torch.arange(40),)).ir("linalg")


def test_ir_of_an_unknown_stage(linear):
    with pytest.raises(PipelineError, match="stage 'ptx': this executable has torch, linalg, fused, kernels, llvm"):
        linear[1].ir("ptx")


def test_observer_sees_the_stages_in_order():
    seen = []
    pipeline.compile(nn.ReLU(), (torch.ones(2),), observer=lambda stage, text: seen.append((stage, "func" in text)))
    assert seen == [(stage, True) for stage in STAGES]


def test_kernels(linear):
    kernels = linear[1].kernels
    assert {kernel.kind for kernel in kernels} >= {"matmul", "elementwise"}
    for kernel in kernels:
        assert kernel.name and kernel.ops and kernel.calls >= 1
        assert f"@{kernel.name}(" in linear[1].ir("kernels")


def test_equal_kernels_are_compiled_once():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU()).requires_grad_(False)
    exe = pipeline.compile(model, (torch.randn(2, 4),))
    assert [kernel.calls for kernel in exe.kernels if kernel.kind == "matmul"] == [2]


def test_remarks(linear):
    for remark in linear[1].remarks:
        assert remark.pass_name and remark.reason and remark.kind in ("passed", "missed", "analysis")
    assert any(remark.pass_name == "hoist-to-prepare" for remark in linear[1].remarks)


# What a model may be.


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


@pytest.mark.parametrize("model", [None, 3, nn.Linear, lambda x: x, object()])
def test_what_is_no_model(model):
    with pytest.raises(PipelineError, match="model: expected an nn.Module"):
        pipeline.compile(model, (torch.ones(2),))


@pytest.mark.parametrize("args", [None, torch.ones(2), [torch.ones(2)]])
def test_args_must_be_a_tuple(args):
    with pytest.raises(PipelineError, match="args"):
        pipeline.compile(nn.ReLU(), args)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.ones(2, dtype=torch.complex64), "argument x: complex64"),
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


# Faults.


class Branches(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x + 1
        return x - 1


def test_branch_on_a_tensor_says_where_and_what_to_do():
    with pytest.raises(CaptureError) as caught:
        pipeline.compile(Branches(), (torch.ones(2),))
    message = str(caught.value)
    line = Branches.forward.__code__.co_firstlineno + 1
    assert f"{__file__}:{line}" in message
    for way_out in ("torch.cond", "torch.while_loop", 'capture="script"'):
        assert way_out in message
    assert "\n" not in message


def test_an_error_in_the_model_is_one_clear_error():
    class Broken(nn.Module):
        def forward(self, x):
            return x @ torch.ones(7, 7)

    with pytest.raises(CaptureError, match=rf"could not capture Broken: .*{__file__}:\d+"):
        pipeline.compile(Broken(), (torch.ones(2, 3),))


def test_arguments_that_the_module_does_not_take():
    with pytest.raises(CaptureError, match="could not capture Linear"):
        pipeline.compile(Linear(), (torch.ones(2, 4),), {"nonsense": 1})


def test_index_out_of_range_is_an_error_and_no_crash():
    exe = pipeline.compile(nn.Embedding(4, 2).requires_grad_(False), (torch.tensor([0, 1]),))
    with pytest.raises(PipelineError, match="index"):
        exe(torch.tensor([0, 4]))
    exe(torch.tensor([0, 3]))
