"""`precision="bf16"` in artifacts, in torch.compile and on command lines; where it is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import pipeline
from pipeline.errors import OptionError
from pipeline.targets.cpu.isa import isa
from pipeline.tools.compile import main as compile_main
from pipeline.tools.run import main as run_main

DOTS = isa("native").bf16_dots


def rounded(tensor):
    return tensor.bfloat16().double() if DOTS else tensor.double()


def test_an_artifact_says_what_it_needs(tmp_path):
    model, x = nn.Linear(64, 32).requires_grad_(False), torch.randn(5, 64)
    executable = pipeline.compile(model, (x,), precision="bf16")
    executable.save(tmp_path / "model.pipeline")
    loaded = pipeline.load(tmp_path / "model.pipeline")
    np.testing.assert_array_equal(loaded(x.numpy()), executable(x).numpy())


def test_torch_compile_takes_the_option():
    torch.manual_seed(0)
    model, x = nn.Linear(64, 32).requires_grad_(False), torch.randn(5, 64)
    compiled = torch.compile(model, backend="pipeline", options={"precision": "bf16"})
    expected = rounded(x) @ rounded(model.weight).T + model.bias.double()
    torch.testing.assert_close(compiled(x).double(), expected, rtol=1e-4, atol=1e-4)


def test_other_targets_and_precisions_are_refused():
    model, x = nn.Linear(4, 4), torch.randn(2, 4)
    with pytest.raises(OptionError, match="precision='f16': expected one of f32, bf16"):
        pipeline.compile(model, (x,), precision="f16")
    with pytest.raises(OptionError, match="precision='bf16': .* on the target cpu only, not on vulkan"):
        pipeline.compile(model, (x,), precision="bf16", target="vulkan")


_NET = """
import torch
def model():
    torch.manual_seed(0)
    return torch.nn.Linear(64, 32).requires_grad_(False), (torch.randn(5, 64),)
"""


def test_command_lines(tmp_path, capsys):
    net, artifact = tmp_path / "net.py", tmp_path / "net.pipeline"
    net.write_text(_NET)
    assert compile_main([str(net), "--precision=bf16", "--emit=llvm"]) == 0
    assert ("dpbf16ps" in capsys.readouterr().out) == DOTS
    assert run_main([str(net), "--compare-precision"]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith("result: error ") and "the largest number is" in line
    assert ("error 0 at most" in line) != DOTS
    assert compile_main([str(net), "--precision=bf16", "-o", str(artifact)]) == 0
    assert run_main([str(net), "--precision=bf16", "--benchmark", "--repeats=1", f"--against={artifact}"]) == 0


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["a.pipeline", "--precision=bf16"], "--precision: needs a model to compile"),
        (["a.pipeline", "--compare-precision"], "--compare-precision: needs a model to compile"),
        (["a.py", "--compare-precision", "--precision=bf16"], "leave --precision out"),
        (["a.py", "--benchmark", "--compare-precision", "--compare-unfused"], "cannot be used together"),
    ],
)
def test_command_lines_that_are_refused(argv, message, capsys):
    with pytest.raises(SystemExit):
        run_main(argv)
    assert message in capsys.readouterr().err
