"""The disk cache of compilations: what it gives back, what it must not, and many processes at once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from disk_cache_entries import outcomes
from torch import nn

import pipeline
from pipeline import disk_cache, timing
from pipeline.disk_cache import DiskCache, open_cache, parse_size
from pipeline.errors import OptionError
from pipeline.frontend.capture.call_parameters import Parameters
from pipeline.frontend.capture.fingerprint import exported_fingerprint
from pipeline.shared_cache import TwoLevels
from pipeline.tools import cache as cache_driver

SCALE = """
func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {{
  %c = arith.constant {factor} : f32
  %e = tensor.empty() : tensor<64xf32>
  %y = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}} ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {{
  ^bb0(%a: f32, %o: f32):
    %m = arith.mulf %a, %c : f32
    linalg.yield %m : f32
  }} -> tensor<64xf32>
  return %y : tensor<64xf32>
}}
"""


class Net(nn.Module):
    def __init__(self, constant: float = 3.0, factor: float = 2.0):
        super().__init__()
        self.linear = nn.Linear(7, 5)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.constant = torch.tensor([constant])
        self.factor = factor

    def forward(self, x):
        self.calls += 1
        return torch.relu(self.linear(x)) * self.factor + self.constant


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PIPELINE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PIPELINE_CACHE_SIZE", "100M")
    return tmp_path / "cache"


def net(**chosen):
    torch.manual_seed(0)
    return Net(**chosen).requires_grad_(False)


def compiled(model, *args, **options):
    """The executable, and whether it came from the cache."""
    with timing.collect() as times:
        executable = pipeline.compile(model, args, **options)
    return executable, times.find("machine code") is None


def test_a_second_compilation_is_taken_from_the_cache(folder):
    x = torch.randn(3, 7)
    first, taken = compiled(net(), x)
    assert not taken
    model = net()
    second, taken = compiled(model, x)
    assert taken
    assert len(outcomes(folder)) == 1
    assert torch.equal(second(x), first(x))
    assert model.calls == 1  # the weights are the live ones of this model
    assert (second.kernels, second.signature, second.remarks) == (first.kernels, first.signature, first.remarks)
    for stage in ("torch", "linalg", "fused", "kernels", "llvm"):
        assert second.ir(stage) == first.ir(stage)


def test_what_the_cache_has_is_taken_without_mlir(folder):
    program = """
import sys, torch, pipeline
model, x = torch.nn.Linear(7, 5).requires_grad_(False), torch.ones(3, 7)
torch.testing.assert_close(pipeline.compile(model, (x,))(x), model(x))
print("torch_mlir" in sys.modules)
"""
    loaded = [subprocess.run([sys.executable, "-c", program], capture_output=True, text=True) for _ in range(2)]
    assert [process.stdout for process in loaded] == ["True\n", "False\n"], loaded


def test_other_weights_are_no_other_entry(folder):
    x = torch.randn(3, 7)
    compiled(net(), x)
    other = Net().requires_grad_(False)
    executable, taken = compiled(other, x)
    assert taken
    torch.testing.assert_close(executable(x), other(x))
    other.linear.weight.mul_(2)
    executable.refresh()
    torch.testing.assert_close(executable(x), other(x))


@pytest.mark.parametrize("change", [{"constant": 4.0}, {"factor": 5.0}])
def test_another_constant_is_another_entry(folder, change):
    x = torch.randn(3, 7)
    compiled(net(), x)
    other = net(**change)
    executable, taken = compiled(other, x)
    assert not taken
    torch.testing.assert_close(executable(x), other(x))


@pytest.mark.parametrize("options", [{"cpu": "x86-64-v2"}, {"disable": ["fuse-elementwise"]}])
def test_other_options_are_another_entry(folder, options):
    x = torch.randn(3, 7)
    compiled(net(), x)
    assert not compiled(net(), x, **options)[1]
    assert compiled(net(), x, **options)[1]


def test_other_shapes_and_dtypes_are_other_entries(folder):
    compiled(net(), torch.randn(3, 7))
    assert not compiled(net(), torch.randn(4, 7))[1]
    assert not compiled(net().double(), torch.randn(3, 7).double())[1]


def test_control_flow_is_part_of_the_key(folder):
    class Branch(nn.Module):
        def __init__(self, factor):
            super().__init__()
            self.factor = factor

        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: x * self.factor, lambda x: x - self.factor, (x,))

    x = torch.ones(4)
    assert not compiled(Branch(2.0), x)[1]
    executable, taken = compiled(Branch(3.0), x)
    assert not taken
    assert torch.equal(executable(x), x * 3)
    assert compiled(Branch(3.0), x)[1]


def test_observers_see_what_the_cache_has(folder):
    seen = {}
    for _ in range(2):
        seen.clear()
        pipeline.compile(net(), (torch.randn(3, 7),), observer=seen.__setitem__)
    assert list(seen) == ["torch", "linalg", "fused", "kernels", "llvm"]
    assert "linalg.generic" in seen["linalg"]


def test_mlir_text(folder):
    x = np.ones(64, np.float32)
    for factor in ("2.0", "3.0"):
        first, taken = compiled(SCALE.format(factor=factor))
        assert not taken
        second, taken = compiled(SCALE.format(factor=factor))
        assert taken
        assert first(x)[0] == second(x)[0] == float(factor)


def test_torch_compile(folder):
    def function(x):
        return x * 2 + 1

    x = torch.randn(5)
    for _ in range(2):
        torch._dynamo.reset()
        with torch.no_grad():
            assert torch.equal(torch.compile(function, backend="pipeline")(x), function(x))
    assert len(outcomes(folder)) == 1


@torch.no_grad()
def test_what_torch_knows_of_sizes_is_part_of_the_key(folder):
    """Of equal graphs one has windows of which there is one beside the other, the other one above the other."""

    def windows(x):
        b, h, w = x.shape
        return x.view(b, h // 4, 4, w // 4, 4).transpose(2, 3).reshape(b, -1, 16).relu()

    torch._dynamo.reset()
    code = torch.compile(windows, backend="pipeline", dynamic=True)
    for h, w in ((16, 4), (4, 8), (8, 12)):
        x = torch.randn(2, h, w)
        assert torch.equal(code(x), windows(x))


def test_without_the_cache(folder, monkeypatch):
    x = torch.randn(3, 7)
    assert not compiled(net(), x, cache=False)[1]
    assert not compiled(net(), x, passes={"linalg": "cse"})[1]
    monkeypatch.setenv("PIPELINE_CACHE_SIZE", "0")
    assert not compiled(net(), x)[1]
    assert not folder.exists()


def test_an_operator_of_somebody_elses_has_no_fingerprint():
    with torch.library._scoped_library("cache_test", "DEF") as library:
        library.define("double(Tensor x) -> Tensor")
        library.impl("double", lambda x: x + x, "CompositeImplicitAutograd")

        class Uses(nn.Module):
            def forward(self, x):
                return torch.ops.cache_test.double(x)

        exported = torch.export.export(Uses(), (torch.ones(3),))
        assert exported_fingerprint(exported, Parameters()) is None
    assert exported_fingerprint(torch.export.export(net(), (torch.ones(3, 7),)), Parameters()) is not None


@pytest.mark.parametrize("damage", ["cut", "flip", "empty"])
def test_damaged_entries_are_deleted(folder, damage):
    x = torch.randn(3, 7)
    wanted = compiled(net(), x)[0](x)
    (entry,) = outcomes(folder)
    data = bytearray(entry.read_bytes())
    data[len(data) // 2] ^= 1
    entry.write_bytes({"cut": data[:100], "flip": data, "empty": b""}[damage])
    executable, taken = compiled(net(), x)
    assert not taken
    assert torch.equal(executable(x), wanted)
    assert compiled(net(), x)[1]


def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PIPELINE_CACHE_DIR", str(tmp_path / "file" / "cache"))
    monkeypatch.setenv("PIPELINE_CACHE_SIZE", "100M")
    executable, taken = compiled(net(), torch.randn(3, 7))
    assert not taken
    assert any(remark.pass_name == "cache" and "is not kept" in remark.reason for remark in executable.remarks)


def test_what_was_used_least_recently_goes_first(tmp_path):
    cache = DiskCache(tmp_path / "cache", 3 * 132)
    for number, key in enumerate("abc"):
        assert cache.put(key, bytes(100)) is None
        os.utime(cache.folder / key, (number, number))
    assert cache.get("a") == bytes(100)  # now b is the oldest
    assert cache.put("d", bytes(100)) is None
    assert sorted(entry.path.name for entry in cache.entries()) == ["a", "c", "d"]
    assert "more than the cache may take" in cache.put("e", bytes(1000))
    assert cache.get("e") is None


def test_there_are_never_more_files_than_can_be_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr(disk_cache, "MOST_ENTRIES", 3)
    cache = DiskCache(tmp_path, 1 << 20)
    assert cache.put_all(dict.fromkeys("abc", b"1")) is None
    for number, key in enumerate("cab"):
        os.utime(tmp_path / key, (number, number))
    assert cache.put_all({"d": b"1", "e": b"1"}) is None
    assert sorted(entry.path.name for entry in cache.entries()) == ["b", "d", "e"]


def test_who_has_seen_much_room_does_not_look_each_time(tmp_path, monkeypatch):
    cache, looks = DiskCache(tmp_path, 100 * 132), []
    entries = DiskCache.entries
    monkeypatch.setattr(DiskCache, "entries", lambda cache: looks.append(1) or entries(cache))
    for number in range(200):
        assert cache.put(f"{number:03}", bytes(100)) is None
        assert len(os.listdir(tmp_path)) == min(number + 1, 100)
        os.utime(tmp_path / f"{number:03}", (number, number))
        if number == 50:
            assert len(looks) < 20
    assert sorted(os.listdir(tmp_path))[0] == "100"


def test_an_outcome_is_kept_where_its_kernels_are_too_much(tmp_path):
    caches = TwoLevels(DiskCache(tmp_path, 1000), None)
    assert caches.put("outcome", bytes(500), {"kernel-a": bytes(600)}) is None
    assert [entry.path.name for entry in caches.disk.entries()] == ["outcome"]
    assert caches.put("outcome", bytes(500), {"kernel-a": bytes(100)}) is None
    assert sorted(entry.path.name for entry in caches.disk.entries()) == ["kernel-a", "outcome"]
    assert "more than the cache may take" in caches.put("another", bytes(1000), {"kernel-b": bytes(10)})
    assert caches.put(None, b"", {}) is None


def test_a_key_belongs_to_its_value(tmp_path):
    cache = DiskCache(tmp_path, 1 << 20)
    cache.put("one", b"1")
    (tmp_path / "one").rename(tmp_path / "two")
    assert cache.get("two") is None


def test_what_killed_processes_leave_goes_after_an_hour(tmp_path):
    cache = DiskCache(tmp_path, 1 << 20)
    for name, age in ((".old.x", 7200), (".new.x", 60)):
        (tmp_path / name).write_bytes(b"part")
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    cache.put("key", b"value")
    assert sorted(os.listdir(tmp_path)) == [".new.x", "key"]


@pytest.mark.parametrize(
    ("text", "size"), [("0", 0), ("17", 17), ("2K", 2048), ("1M", 1 << 20), ("3GiB", 3 << 30), ("1gb", 1 << 30)]
)
def test_sizes(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "-1", "1.5G", "lots", "1T"])
def test_wrong_sizes(text, monkeypatch):
    monkeypatch.setenv("PIPELINE_CACHE_SIZE", text)
    with pytest.raises(OptionError, match="expected a size such as 500M"):
        open_cache()


def test_the_driver(folder, capsys):
    compiled(net(), torch.randn(3, 7))
    assert cache_driver.main(["list"]) == 0
    assert next(folder.iterdir()).name in capsys.readouterr().out
    assert cache_driver.main(["size"]) == 0
    kernels = len(list(folder.iterdir())) - 1
    assert kernels and f"of 104,857,600 bytes in 1 entries and {kernels} kernels" in capsys.readouterr().out
    assert cache_driver.main(["clear"]) == 0
    assert not list(folder.iterdir())
    assert capsys.readouterr().out == f"1 entries and {kernels} kernels deleted\n"


WORKER = """
import sys
import numpy as np
import pipeline
template, rounds = sys.argv[1], int(sys.argv[2])
x = np.arange(64, dtype=np.float32)
for number in range(rounds):
    factor = 2.0 + number % 3
    assert np.array_equal(pipeline.compile(template.format(factor=factor))(x), x * factor), factor
"""


def test_eight_processes_one_of_them_killed_at_random_moments(folder):
    """Of three models only two fit, so that all write, read and delete all the time."""
    for factor in (2.0, 3.0, 4.0):
        pipeline.compile(SCALE.format(factor=factor))
    limit = int(2.5 * max(entry.stat().st_size for entry in folder.iterdir()))
    DiskCache(folder, limit).shrink(limit)
    environment = {**os.environ, "PIPELINE_CACHE_SIZE": str(limit)}

    def start(rounds):
        return subprocess.Popen([sys.executable, "-c", WORKER, SCALE, str(rounds)], env=environment)

    workers = [start(9) for _ in range(7)]
    moments = random.Random(0)
    for _ in range(6):
        victim = start(10**9)
        time.sleep(1 + moments.random())
        victim.send_signal(signal.SIGKILL)
        assert victim.wait(60) == -signal.SIGKILL
    assert [worker.wait(200) for worker in workers] == [0] * 7
    cache = DiskCache(Path(folder), limit)
    assert cache.put("one more", b"") is None  # what the last victim left behind is cleared up by who writes next
    assert sum(entry.size for entry in cache.entries()) <= limit
    whole = [entry.path.name for entry in cache.entries() if not entry.path.name.startswith(".")]
    assert whole
    assert all(cache.get(key) is not None for key in whole)


def test_autocast_around_a_compilation_is_part_of_what_it_depends_on(tmp_path, monkeypatch):
    monkeypatch.setenv("PIPELINE_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PIPELINE_CACHE_SIZE", "1G")
    model, x = nn.Linear(4, 4).eval(), torch.randn(3, 4)
    for count in (3, 3):  # the second time all of them are found
        assert pipeline.compile(model, (x,))(x).dtype == torch.float32
        for dtype in (torch.bfloat16, torch.float16):
            with torch.autocast("cpu", dtype=dtype):
                assert pipeline.compile(model, (x,))(x).dtype == dtype
        assert len(outcomes(tmp_path)) == count
