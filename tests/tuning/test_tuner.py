"""Tuning with a measurer and a clock of the test's: what is chosen, kept and used again."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import nn

import pipeline
from pipeline.disk_cache import DiskCache
from pipeline.ir.schedule import DEFAULT, Schedule, schedule_of
from pipeline.mlir import context, parse, walk
from pipeline.options import Options
from pipeline.remarks import collect
from pipeline.tools.compile import main as compile_main
from pipeline.tuning import bench
from pipeline.tuning import tuner as tuner_module
from pipeline.tuning.measure import agree, gain
from pipeline.tuning.tuner import Tuner

LINEAR = nn.Linear(64, 96).requires_grad_(False)
X = torch.randn(9, 64)


def kernels_of(model, *args, **options):
    """The module of a model at the stage `kernels`."""
    return parse(pipeline.compile(model, args, **options).ir("kernels"), context())


def schedules(module):
    """What the kernels of a module have been given, apart from defaults."""
    found = [schedule_of(one) for one in walk(module, "func.func") if "pipeline.kernel" in one.attributes]
    return [one for one in found if one != DEFAULT]


def run(module, measure, seconds=1e9, cache=None, clock=lambda: 0.0, **options):
    """Tunes a module; returns the tuner and its remarks."""
    made = Tuner(Options.create({"num_threads": 1, **options}), seconds, cache, measure, clock)
    with collect() as remarks, module.context:
        made.run(module)
    return made, [str(one) for one in remarks if one.pass_name == "tune"]


def never(old, new):
    raise AssertionError("measured")


class Measurer:
    """Says of the variants, in order, how many times as fast as the default they are; of others, as fast."""

    def __init__(self, *gains):
        self.gains = list(gains)
        self.calls = 0

    def __call__(self, old, new):
        old()
        new()
        self.calls += 1
        return self.gains.pop(0) if self.gains else 1.0


def test_the_best_is_chosen_and_confirmed():
    module = kernels_of(LINEAR, X)
    measurer = Measurer(1.2, 1.5, 0.5)
    made, remarks = run(module, measurer)
    assert made.complete and not schedules(module)  # it was not faster when it was measured once more
    assert "the default: no other is faster" in remarks[0]
    module = kernels_of(LINEAR, X)
    count = measurer.calls - 1
    _, remarks = run(module, Measurer(1.2, 1.5, *[1.0] * (count - 2), 1.3))
    (chosen,) = schedules(module)
    assert f"{chosen}: 1.30 times as fast as the default" in remarks[0]


def test_what_is_kept_is_used_without_measuring(tmp_path):
    cache = DiskCache(tmp_path, 1 << 20)
    modules = [kernels_of(LINEAR, X) for _ in range(4)]
    _, remarks = run(modules[0], lambda old, new: 2.0, cache=cache)
    assert "as measured before" not in remarks[0]
    for module in modules[1:3]:
        made, remarks = run(module, never, 0 if module is modules[2] else 10, cache)
        assert made.complete and schedules(module) == schedules(modules[0]) != []
        assert "2.00 times as fast as the default, as measured before" in remarks[0]
    made, _ = run(modules[3], never, 0, cache, num_threads=2)  # that is another machine
    assert not made.complete and not schedules(modules[3])


def test_without_time_nothing_is_measured_chosen_or_kept(tmp_path):
    cache = DiskCache(tmp_path, 1 << 20)
    module = kernels_of(LINEAR, X)
    made, remarks = run(module, never, 0, cache)
    assert not made.complete and not schedules(module) and not cache.entries()
    assert "1 kernels have the default schedule: no time was left to measure them" in remarks[0]


def test_it_stops_when_the_time_is_over(tmp_path):
    cache, now = DiskCache(tmp_path, 1 << 20), iter(range(1000))
    module = kernels_of(LINEAR, X)
    measurer = Measurer(2.0, 2.0, 2.0, 2.0)
    made, _ = run(module, measurer, 3, cache, lambda: next(now))
    assert measurer.calls <= 3
    assert not made.complete and not schedules(module) and not cache.entries()


def test_a_variant_with_other_results_is_not_taken(monkeypatch):
    monkeypatch.setattr(bench, "agree", lambda results, expected: False)
    module = kernels_of(LINEAR, X)
    made, _ = run(module, never)
    assert made.complete and not schedules(module)


class Gather(nn.Module):
    def forward(self, x, indices):
        return torch.softmax(x[indices], -1)


def test_what_cannot_be_called_alone_is_not_measured():
    rows = torch.export.Dim("rows", min=2, max=64)
    dynamic = kernels_of(LINEAR, X, dynamic_shapes=({0: rows},))
    made, remarks = run(dynamic, never)
    assert made.complete and "not measured: " in remarks[0]
    numbers = kernels_of(Gather(), torch.randn(40, 30), torch.randint(0, 40, (8,)))
    made, remarks = run(numbers, Measurer())
    assert made.complete and not schedules(numbers)
    assert any("not measured: it takes or returns" in one for one in remarks)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.MultiheadAttention(32, 2, batch_first=True)

    def forward(self, x):
        return self.heads(x, x, x, need_weights=False)[0]


@pytest.mark.parametrize(
    ("model", "shape", "options"),
    [
        (nn.Sequential(nn.Linear(256, 192), nn.GELU()), (13, 256), {}),
        (nn.Sequential(nn.Linear(256, 192), nn.GELU()), (13, 256), {"precision": "bf16"}),
        (nn.Linear(65, 33), (5, 65), {}),
        (nn.Sequential(nn.Conv2d(16, 64, 3, padding=1), nn.ReLU()), (1, 16, 9, 11), {}),
        (nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.Conv2d(64, 64, 3, padding=1)), (1, 64, 14, 14), {}),
        (nn.Sequential(nn.Conv2d(16, 64, 3, padding=1), nn.ReLU()), (1, 16, 9, 11), {"precision": "bf16"}),
        (nn.Sequential(nn.LayerNorm(48), nn.Softmax(-1)), (70, 48), {}),
        (nn.Linear(64, 96).double(), (9, 64), {}),
        (Attention(), (2, 40, 32), {}),
    ],
)
def test_every_variant_computes_the_same(monkeypatch, model, shape, options):
    torch.manual_seed(0)
    compared = []

    def compare(results, expected):
        compared.append(agree(results, expected))
        return compared[-1]

    monkeypatch.setattr(bench, "agree", compare)
    model = model.eval().requires_grad_(False)
    x = torch.randn(shape, dtype=next(model.parameters()).dtype)
    run(kernels_of(model, x, **options), Measurer(), **options)
    assert compared and all(compared)


def test_agreement():
    one = torch.tensor([1.0, float("inf"), float("nan")]).numpy()
    near, far = one.copy(), one.copy()
    near[0], far[0] = 1.00001, 1.01
    assert agree([near], [one]) and not agree([far], [one])
    other = one.copy()
    other[1] = 3.0
    assert not agree([other], [one]) and not agree([one[:2]], [one]) and agree([one[:0]], [one[:0]])


def test_the_measurer_calls_both_in_turn():
    calls = []
    assert gain(lambda: calls.append("old"), lambda: calls.append("new")) > 0
    assert calls[:4] == ["old", "new"] * 2 and calls.count("old") == calls.count("new") >= 6


def test_compilations(tmp_path, monkeypatch):
    monkeypatch.setenv("PIPELINE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PIPELINE_CACHE_SIZE", "100M")
    monkeypatch.setattr(tuner_module, "Tuner", partial(Tuner, measure=lambda old, new: 2.0))
    plain = pipeline.compile(LINEAR, (X,))
    first = pipeline.compile(LINEAR, (X,), tune=0)  # nothing is kept yet: it is compiled with the default, not kept
    assert "pipeline.schedule" not in plain.ir("kernels") + first.ir("kernels")
    tuned = pipeline.compile(LINEAR, (X,), tune=1e9)
    assert "pipeline.schedule" in tuned.ir("kernels")
    torch.testing.assert_close(tuned(X), LINEAR(X))
    monkeypatch.setattr(tuner_module, "Tuner", partial(Tuner, measure=never))
    for seconds in (0, 1e9):
        again = pipeline.compile(LINEAR, (X,), tune=seconds)
        assert again.ir("kernels") == tuned.ir("kernels") and again.remarks == tuned.remarks
    assert "pipeline.schedule" not in pipeline.compile(LINEAR, (X,)).ir("kernels")
    compiled = torch.compile(LINEAR, backend="pipeline", options={"tune": 0})
    torch.testing.assert_close(compiled(X), LINEAR(X))


def test_the_real_measurer(tmp_path, monkeypatch):
    monkeypatch.setenv("PIPELINE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PIPELINE_CACHE_SIZE", "100M")
    tuned = pipeline.compile(nn.Sequential(LINEAR, nn.Softmax(-1)), (X,), tune=1e9)
    torch.testing.assert_close(tuned(X), torch.softmax(LINEAR(X), -1))
    assert any(one.pass_name == "tune" and one.kind == "passed" for one in tuned.remarks)


def test_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PIPELINE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PIPELINE_CACHE_SIZE", "100M")
    net = tmp_path / "net.py"
    net.write_text("import torch\ndef model():\n    return torch.nn.Linear(64, 32), (torch.randn(5, 64),)\n")
    argv = [str(net), "--tune=0", "--remarks-filter=tune", "-o", str(tmp_path / "net.pipeline")]
    assert compile_main(argv) == 0
    assert "no time was left to measure them" in capsys.readouterr().err
    assert compile_main([str(net), "--tune=-1", "-o", str(tmp_path / "net.pipeline")]) == 1
    assert "tune: expected a number of seconds" in capsys.readouterr().err


def test_a_schedule_in_words():
    assert str(Schedule(rows=4, columns=32)) == "rows=4 columns=32" and str(DEFAULT) == "the default"
