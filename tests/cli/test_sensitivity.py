"""pipeline-run --sensitivity: each weight's part of the error of rounding, and which weights to keep."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import pipeline
from pipeline.tools.run import main as run_main
from pipeline.tools.sensitivity import rounded_weight

#: A layer whose columns have an outlier each, so that int8 costs most there; a small one stays in floats.
_NET = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.outliers = nn.Linear(128, 96), nn.Linear(96, 96, bias=False)
        self.table = nn.Parameter(torch.randn(96, 128) / 10)
        self.small = nn.Linear(8, 8)
        with torch.no_grad():
            self.outliers.weight[:, 3] = 30.0
    def forward(self, x):
        hidden = torch.tanh(self.outliers(torch.relu(self.first(x))) / 8)
        return {"logits": hidden @ self.table, "other": self.small(x[:, :8])}
def model():
    torch.manual_seed(0)
    return Net().eval().requires_grad_(False), (torch.randn(5, 128),)
"""


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "net.py"
    path.write_text(_NET)
    return path


def made(net: Path) -> tuple[nn.Module, torch.Tensor]:
    scope: dict[str, Any] = {}
    exec(net.read_text(), scope)
    model, (x,) = scope["model"]()
    return model, x


def sections(text: str) -> dict[str, dict[str, float]]:
    """By option the error for each weight, in the order of the lines."""
    found: dict[str, dict[str, float]] = {}
    for line in text.splitlines():
        if line.startswith("--"):
            own = found.setdefault(line.partition(":")[0], {})
        elif match := re.fullmatch(r"  (\S+) +(?:KL \S+ +)?(\S.*)", line):
            number, name = match.groups()
            if re.fullmatch(r"[\d.e+-]+", number):
                own[name] = float(number)
    return found


def test_errors_are_those_of_compilations_that_round_one_weight(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_main([str(net), "--sensitivity", "--group=32", "--bound=0.05"]) == 0
    text = capsys.readouterr().out
    found = sections(text)
    assert set(found) == {"--weights=int8 --group=32", "--weights=int4 --group=32", "--precision=bf16"}
    model, x = made(net)
    exact = model(x)
    size = sum(value.double().square().sum() for value in exact.values()).sqrt()
    names = ["first.weight", "outliers.weight", "table"]
    for kind in ("int8", "int4"):
        errors = found[f"--weights={kind} --group=32"]
        *single, everything = errors
        assert single == sorted(names, key=lambda name: -errors[name]) and everything == "all 3 of them"
        for name in names:
            kept = tuple(other for other in names if other != name)
            executable = pipeline.compile(model, (x,), weights=kind, group=32, keep=kept)
            got = executable(x)
            off = sum((got[key].double() - exact[key].double()).square().sum() for key in exact).sqrt()
            assert errors[name] == pytest.approx(float(off / size), rel=0.02), (kind, name)
    assert next(iter(found["--weights=int8 --group=32"])) == "outliers.weight"
    assert "KL" in text
    assert "  as they are: small.weight" in text
    (line,) = re.findall(r"within 0.05: --weights=int4 --group=32(.*), error (\S+)", text)
    kept = tuple(re.findall(r"--keep=(\S+)", line[0]))
    assert kept == ("table", "first.weight") and float(line[1]) <= 0.05
    got = pipeline.compile(model, (x,), weights="int4", group=32, keep=kept)(x)
    off = sum((got[key].double() - exact[key].double()).square().sum() for key in exact).sqrt()
    assert float(off / size) == pytest.approx(float(line[1]), rel=0.02)


def test_weights_that_are_held_transposed_and_groups_that_do_not_fit(
    net: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_main([str(net), "--sensitivity", "--group=64"]) == 0
    text = capsys.readouterr().out
    assert "  as they are: outliers.weight, table, small.weight" in text
    assert "within" not in text


def test_rounding() -> None:
    """What is rounded on the host is what compiled products read."""
    torch.manual_seed(0)
    layer, x = nn.Linear(128, 64, bias=False).requires_grad_(False), torch.eye(128)
    for kind in ("int8", "int4"):
        for group in (None, 32):
            read = pipeline.compile(layer, (x,), weights=kind, group=group)(x).T
            rounded = rounded_weight(layer.weight.numpy(), (1,), kind, group)
            assert rounded is not None
            assert torch.equal(read, torch.from_numpy(rounded))
    bf16 = rounded_weight(layer.weight.numpy(), (1,), "bf16", None)
    assert torch.equal(torch.from_numpy(bf16), layer.weight.bfloat16().float())


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["a.pipeline", "--sensitivity"], "--sensitivity: needs a model to compile"),
        (["a.py", "--sensitivity", "--precision=bf16"], "leave --precision out"),
        (["a.py", "--bound=0.1"], "--bound: needs --sensitivity"),
        (["a.py", "--sensitivity", "--bound=0"], "--bound: expected an error above 0"),
        (["a.py", "--group=32"], "--group: needs --sensitivity"),
    ],
)
def test_command_lines_that_are_refused(argv: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run_main(argv)
    assert message in capsys.readouterr().err


def test_models_in_16_bits(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Their weights are rounded as those in f32 are; to bf16 there is nothing to round."""
    assert run_main([str(net), "--sensitivity"]) == 0
    wide = sections(capsys.readouterr().out)
    narrow = net.with_name("narrow.py")  # Python takes a file of the same second and length for the one before
    narrow.write_text(
        _NET.replace("requires_grad_(False), (torch.randn(5, 128),)", "bfloat16(), (torch.randn(5, 128).bfloat16(),)")
    )
    assert run_main([str(narrow), "--sensitivity"]) == 0
    text = capsys.readouterr().out
    found = sections(text)
    assert "--precision=bf16: error" in text and found["--precision=bf16"] == {}
    for option in ("--weights=int8", "--weights=int4"):
        assert set(found[option]) == set(wide[option])
        for name, error in found[option].items():
            assert 0.8 * wide[option][name] < error < 1.2 * wide[option][name] + 0.01, (option, name)
