"""Functions and other callables as models, and constants as defaults of a call."""

from __future__ import annotations

import functools

import pytest
import torch
from torch import nn

import pipeline
from pipeline import ArgumentError, CaptureError, PipelineError

linear = nn.Linear(4, 3).requires_grad_(False)
X = torch.randn(2, 4)


class Scaled:
    """A callable that is no module but has one."""

    def __init__(self):
        self.layer = linear

    def __call__(self, x):
        return self.layer(x) * 2

    def half(self, x):
        return self.layer(x) * 0.5


def named(x, shift=1.0):
    return linear(x) + shift


MODELS = {
    "builtin": torch.relu,
    "functional": nn.functional.gelu,
    "lambda": lambda x: x + 1,
    "function": named,
    "partial": functools.partial(named, shift=2.0),
    "method": Scaled().half,
    "callable": Scaled(),
    "module's method": linear.forward,
    "torch.compile of a module": torch.compile(linear),
    "torch.compile of a function": torch.compile(named),
    "traced function": torch.jit.trace(torch.tanh, X),
}


@pytest.mark.parametrize("name", MODELS)
def test_callables(name):
    model = MODELS[name]
    want = getattr(model, "_orig_mod", getattr(model, "_torchdynamo_orig_callable", model))(X)
    torch.testing.assert_close(pipeline.compile(model, (X,))(X), want)


def test_a_function_has_the_weights_of_its_modules():
    layer = nn.Linear(4, 3).requires_grad_(False)
    exe = pipeline.compile(lambda x: layer(x).relu(), X)
    layer.weight.neg_()
    exe.refresh()
    torch.testing.assert_close(exe(X), layer(X).relu())


def test_sizes_of_functions_may_change():
    for function in (torch.relu, lambda x: x.relu()):
        exe = pipeline.compile(function, (X,), dynamic_shapes=({0: torch.export.Dim("n")},))
        for rows in (1, 5):
            x = torch.randn(rows, 4)
            torch.testing.assert_close(exe(x), x.relu())


def test_a_function_is_called_by_its_parameters():
    exe = pipeline.compile(named, (X,), {"shift": 3.0})
    for result in (exe(X), exe(x=X), exe(X, 3.0), exe(X, shift=3.0)):
        torch.testing.assert_close(result, named(X, 3.0))
    with pytest.raises(ArgumentError, match=r"shift: the model was compiled for 3.0, got 1.0"):
        exe(X, 1.0)


def test_a_tensor_stands_for_a_tuple_of_one():
    torch.testing.assert_close(pipeline.compile(linear, X)(X), linear(X))


class Sums(nn.Module):
    def forward(self, x, times=1, flag=True):
        return x * times if flag else -x


@pytest.mark.parametrize(("args", "kwargs"), [((X, 3), {}), ((X,), {"times": 3}), ((X, 3, True), {})])
def test_constants_are_the_defaults_of_a_call(args, kwargs):
    exe = pipeline.compile(Sums(), args, kwargs)
    torch.testing.assert_close(exe(X), X * 3)
    torch.testing.assert_close(exe(X, 3), X * 3)
    with pytest.raises(ArgumentError, match="times: the model was compiled for 3, got 2"):
        exe(X, 2)


def test_a_constant_that_is_not_the_parameters_default():
    exe = pipeline.compile(Sums(), (X,), {"flag": False})
    torch.testing.assert_close(exe(X), -X)
    with pytest.raises(ArgumentError, match="missing"):
        exe()


class Free(nn.Module):
    """Nobody knows the names of its parameters."""

    def forward(self, *args):
        return args[0] * args[1]


def test_constants_of_parameters_without_names():
    exe = pipeline.compile(Free(), (X, 2.5))
    torch.testing.assert_close(exe(X), X * 2.5)


def _files(folder):
    """(name, contents, message) of files that are no model."""
    torch.save(linear.state_dict(), folder / "weights.pt")
    torch.save(linear.state_dict(), folder / "weights.pth")
    (folder / "text.pt").write_text("no archive")
    (folder / "folder.pt2").mkdir()
    for name in ("model.onnx", "model.safetensors", "model.bin", "model.h5", "net.py", "net.pipeline", "net.ckpt"):
        (folder / name).write_bytes(b"x")
    return {
        "weights.pt": "torch.save wrote it",
        "weights.pth": "torch.save wrote it",
        "text.pt": "no TorchScript archive",
        "folder.pt2": "is a folder",
        "model.onnx": "not an ONNX model",
        "model.safetensors": "weights, no program",
        "model.bin": "weights, no program",
        "net.ckpt": "weights, no program",
        "model.h5": "expected a .pt2 archive",
        "net.py": "make one",
        "net.pipeline": "pipeline.load",
        "absent.pt2": "no such file",
        "absent.pt": "no such file",
        "absent.mlir": "cannot be read",
        "absent/model.jit": "no such file",
        "absent": "no such file",
    }


def test_files_that_are_no_model(tmp_path):
    for name, message in _files(tmp_path).items():
        for path in (tmp_path / name, str(tmp_path / name)):
            with pytest.raises(PipelineError, match=message) as caught:
                pipeline.compile(path, (X,))
            assert str(path) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("ending", [".pt", ".pth", ".jit"])
def test_files_of_torchscript(tmp_path, ending):
    path = tmp_path / f"model{ending}"
    torch.jit.save(torch.jit.script(linear), path)
    torch.testing.assert_close(pipeline.compile(path, (X,))(X), linear(X))


def _raises(x):
    raise ValueError("what the model says")


WRONG = {
    "a class": (nn.Linear, (X,), {}, "Linear is a class, not a model; make one first"),
    "weights": (linear.state_dict(), (X,), {}, "load_state_dict"),
    "a tensor": (X, (X,), {}, "expected an nn.Module, a function"),
    "None": (None, (X,), {}, "expected an nn.Module, a function"),
    "a list of arguments": (linear, [X], {}, r"tuple\(args\)"),
    "a dict of arguments": (linear, {"x": X}, {}, r"args: expected a tuple"),
    "a number": (linear, 3, {}, r"pass \(args,\)"),
    "no arguments": (linear, None, {}, "example arguments are needed"),
    "an empty tuple": (linear, (), {}, "could not capture Linear"),
    "too many": (linear, (X, X), {}, "could not capture Linear"),
    "kwargs as a tuple": (linear, (X,), {"kwargs": (X,)}, "kwargs: expected a dict"),
    "kwargs by number": (linear, (X,), {"kwargs": {0: X}}, "kwargs: expected names"),
    "an unknown name": (linear, (X,), {"kwargs": {"y": X}}, "could not capture Linear"),
    "another size": (linear, (torch.ones(2, 5),), {}, "could not capture Linear"),
    "integers": (nn.Conv1d(2, 3, 1), (X.long(),), {}, "could not"),
    "a branch": (lambda x: x if x.sum() > 0 else -x, (X,), {}, "torch.cond"),
    "a loop": (lambda x: [x for _ in range(int(x.sum()))], (X,), {}, "could not capture"),
    "an error": (_raises, (X,), {}, "what the model says"),
    "a result": (lambda x: object(), (X,), {}, "could not capture|supported|returned"),
    "a string as result": (lambda x: {1, 2}, (X,), {}, "could not capture|supported|returned"),
    "an unknown option": (linear, (X,), {"optimize": 3}, "unknown option 'optimize'"),
    "a misspelt option": (linear, (X,), {"precison": "bf16"}, "did you mean 'precision'"),
    "a precision": (linear, (X,), {"precision": "int8"}, "expected one of f32, bf16"),
    "a target": (linear, (X,), {"target": "gpu"}, "target"),
    "a cpu": (linear, (X,), {"cpu": "pentium-9"}, "cpu"),
    "a number of threads": (linear, (X,), {"num_threads": 0}, "num_threads"),
    "a capture": (linear, (X,), {"capture": "trace"}, "expected one of export, script"),
    "a pass": (linear, (X,), {"disable": ["fuse"]}, "fuse"),
    "a string of passes": (linear, (X,), {"passes": "cse"}, "passes: expected"),
    "a range": (linear, (X,), {"dynamic_shapes": ({1: torch.export.Dim("n")},)}, r"Dim.AUTO"),
    "shapes of other arguments": (linear, (X,), {"dynamic_shapes": ({}, {})}, "dynamic_shapes"),
    "names of other arguments": (linear, (X,), {"dynamic_shapes": {"y": {0: torch.export.Dim("n")}}}, "dynamic_shapes"),
    "a string": ("resnet18", None, {}, "resnet18: no such file"),
    "a folder": ("/", None, {}, "is a folder"),
    "a sparse tensor": (lambda x: x * 2, (X.to_sparse(),), {}, "sparse"),
    "a string as tensor": (linear, ("x",), {}, "could not capture Linear"),
    "an object": (linear, (object(),), {}, "could not capture Linear"),
    "a script's arguments": (torch.jit.script(nn.Linear(4, 3)), (X, X), {}, "got 2 arguments; expected input"),
    "a script without any": (torch.jit.script(nn.Linear(4, 3)), (), {}, "needs input"),
    "no way to script it": (lambda x: x.nothing(), (X,), {"capture": "script"}, "could not script"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_newcomers_type_is_told_in_a_sentence(name):
    model, args, options, message = WRONG[name]
    with pytest.raises(PipelineError, match=message) as caught:
        pipeline.compile(model, args, **options)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 2500


def test_torchs_text_about_ranges_is_kept():
    class Narrow(nn.Module):
        def forward(self, x):
            return x + 1 if x.shape[0] < 50 else x

    with pytest.raises(CaptureError) as caught:
        pipeline.compile(Narrow(), X, dynamic_shapes=({0: torch.export.Dim("rows", max=100)},))
    message = str(caught.value)
    assert "rows" in message and "49" in message and "Dim.AUTO" in message and "\n" not in message


def test_long_texts_do_not_reach_the_terminal():
    def talks(x):
        raise ValueError("graph " * 100_000)

    with pytest.raises(CaptureError) as caught:
        pipeline.compile(talks, X)
    assert len(str(caught.value)) < 2500 and caught.value.__cause__ is None and caught.value.__suppress_context__
