"""Kernels that several models share: their code is compiled once, and is what each model alone would have."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch import nn

import pipeline
from pipeline import compile_cache
from pipeline.compile_cache import KernelCache
from pipeline.compiler import compile as compile_model
from pipeline.disk_cache import DiskCache
from pipeline.runtime.native.elf import ElfFile
from pipeline.targets.cpu import build


class Store:
    """A disk cache that counts what it has, and what it has not."""

    def __init__(self, folder: Path):
        self.cache = KernelCache(DiskCache(folder, 1 << 28))
        self.found: list[str] = []
        self.missed: list[str] = []

    def get(self, key):
        data = self.cache.get(key)
        (self.missed if data is None else self.found).append(key)
        return data

    def put_all(self, entries):
        self.cache.put_all(entries)
        assert self.cache.disk.put_all(self.cache.new) is None

    def forget(self):
        """Counts from here on."""
        self.found, self.missed = [], []


@pytest.fixture
def store(tmp_path, monkeypatch):
    """Where kernels are kept in a test, though nothing else is."""
    made = Store(tmp_path / "kernels")
    monkeypatch.setattr(compile_cache, "kernels_of", lambda caches: made)
    return made


def alone(monkeypatch, *args, **options):
    """An executable all of whose code is its own."""
    with monkeypatch.context() as patched:
        patched.setattr(compile_cache, "kernels_of", lambda caches: None)
        return pipeline.compile(*args, **options)


class Reads(nn.Module):
    """Looks rows up, which is checked."""

    def __init__(self, width: int):
        super().__init__()
        self.table, self.last = nn.Embedding(7, 6), nn.Linear(6, width)

    def forward(self, x):
        return self.last(torch.tanh(self.table(x))).softmax(-1)


class Attends(nn.Module):
    """Attention, whose kernels have scratch of their own, and norms."""

    def __init__(self, width: int):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(64, 4, 96, batch_first=True)
        self.last = nn.Linear(64, width)

    def forward(self, x):
        return self.last(self.layer(x))


class Recurs(nn.Module):
    """A loop that is a kernel."""

    def __init__(self, width: int):
        super().__init__()
        self.net, self.last = nn.GRU(5, 6), nn.Linear(6, width)

    def forward(self, x):
        return self.last(self.net(x)[0])


class Repeats(nn.Module):
    """Equal kernels, some of them only in other lines."""

    def __init__(self, width: int):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(32, 32), nn.Linear(32, 32), nn.Linear(32, width)

    def forward(self, x):
        x = torch.sin(self.first(x)).cumsum(0)
        x = torch.sin(self.second(x)).cumsum(0)
        return self.last(x)


def convolutions(width: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3, padding=1),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 32, 3, stride=2, groups=32),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, width),
    )


def with_scratch(width: int) -> nn.Module:
    """A convolution by Winograd's algorithm, for which each thread has scratch in the workspace."""
    convolution = nn.Conv2d(64, 64, 3, padding=1)
    return nn.Sequential(convolution, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, width))


#: name: (a net by the width of its last layer, its argument, options)
NETS = {
    "products": (
        lambda width: nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, width)),
        torch.randn(5, 32),
        {},
    ),
    "convolutions": (convolutions, torch.randn(2, 3, 32, 32), {}),
    "scratch": (with_scratch, torch.randn(1, 64, 56, 56), {}),
    "indices": (Reads, torch.tensor([[1, 6, 0]]), {}),
    "attention": (Attends, torch.randn(2, 70, 64), {}),
    "one thread": (Attends, torch.randn(2, 70, 64), {"num_threads": 1}),
    "a loop": (Recurs, torch.randn(9, 2, 5), {}),
    "repeated": (Repeats, torch.randn(40, 32), {}),
    "bytes": (Attends, torch.randn(2, 9, 64), {"weights": "int8"}),
    "bf16": (Attends, torch.randn(2, 9, 64), {"precision": "bf16"}),
    "any size": (Attends, torch.randn(2, 70, 64), {"dynamic_shapes": ({1: torch.export.Dim("length", max=99)},)}),
    "profiled": (Attends, torch.randn(2, 9, 64), {"profile": True}),
}


@pytest.mark.parametrize("name", NETS)
def test_a_second_model_is_what_it_would_be_alone(name, store, monkeypatch):
    make, x, options = NETS[name]
    torch.manual_seed(0)
    first, second = (make(width).eval().requires_grad_(False) for width in (10, 11))
    for net in (first, second):
        store.forget()
        shared = pipeline.compile(net, (x,), **options)
        own = alone(monkeypatch, net, (x,), **options)
        assert torch.equal(shared(x), own(x))
        assert list(map(str, shared.remarks)) == list(map(str, own.remarks))
        assert [remark.kernel for remark in shared.remarks] == [remark.kernel for remark in own.remarks]
        assert shared.ir("llvm") == own.ir("llvm")
        assert shared.kernels == own.kernels
        for field in ("workspace", "thread_bytes", "unread", "checks", "sites", "prepared"):
            assert getattr(shared._code, field) == getattr(own._code, field)
    assert store.found


def test_only_what_is_new_is_compiled(store, monkeypatch):
    """As many kernels as differ: the last layer's, and what packs its weight."""
    compiled = []
    units = build.units

    def watched(*args, **options):
        made = units(*args, **options)
        compiled.append([options["sharing"].new[name].name for name in made.kernels])
        return made

    monkeypatch.setattr(build, "units", watched)
    make, x, _ = NETS["products"]
    nets = [make(width).eval().requires_grad_(False) for width in (10, 11, 11)]
    nets[2][3] = nn.Linear(64, 11).requires_grad_(False)
    for net in nets:
        pipeline.compile(net, (x,))
    assert any(name.startswith("fused_matmul_add_") for name in compiled[0])
    assert compiled[1] and len(compiled[1]) < len(compiled[0])
    assert all("layer_norm" not in name for name in compiled[1])
    assert compiled[2] == []


def test_a_kernel_is_in_the_code_once(store):
    """Whoever calls it, and whether its code is known or not."""
    net, x = Repeats(10).eval().requires_grad_(False), torch.randn(40, 32)
    for _ in range(2):
        (code,) = pipeline.compile(net, (x,))._code.objects
        file = ElfFile(code)
        names = [name for name in file.symbol_names(range(len(file.symbols))) if "." in name]
        assert names and len(names) == len(set(names))
        assert sum(name.startswith("scan.") for name in names) == 1


def test_models_that_write_to_what_they_are_given(store, monkeypatch):
    class Steps(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.register_buffer("sum", torch.zeros(4, 16))
            self.last = nn.Linear(16, width)

        def forward(self, x):
            self.sum += torch.tanh(x)
            x.mul_(2)
            return self.last(self.sum)

    for width in (3, 4):
        net = Steps(width).eval().requires_grad_(False)
        eager = copy.deepcopy(net)
        compiled, x = pipeline.compile(net, (torch.randn(4, 16),)), torch.randn(4, 16)
        for _ in range(3):
            mine, theirs = x.clone(), x.clone()
            torch.testing.assert_close(compiled(mine), eager(theirs))
            torch.testing.assert_close(mine, theirs)
            torch.testing.assert_close(net.sum, eager.sum)
    assert store.found


def test_a_check_of_a_shared_kernel_still_speaks(store):
    for width in (10, 11):
        net = Reads(width).eval().requires_grad_(False)
        compiled = pipeline.compile(net, (torch.tensor([[1, 6, 0]]),))
        with pytest.raises(pipeline.PipelineError, match="index"):
            compiled(torch.tensor([[1, 7, 0]]))


def test_what_may_not_be_shared(store, monkeypatch):
    """Other processors and options have kernels of their own; so have single object files, and those who look on."""
    make, x, _ = NETS["products"]
    net = make(10).eval().requires_grad_(False)
    pipeline.compile(net, (x,))
    store.forget()
    pipeline.compile(net, (x,), cpu="x86-64-v2")
    pipeline.compile(net, (x,), num_threads=1)
    pipeline.compile(net, (x,), disable=["divide-by-reciprocals"])
    assert store.missed and not store.found
    store.forget()
    stages = []
    compile_model(net, (x,), observer=lambda stage, text: stages.append(stage))
    compile_model(net, (x,), linked=True)
    compile_model(net, (x,), assembly=True)
    assert not store.found and not store.missed and stages[-1] == "llvm"


def test_a_damaged_entry_is_compiled_anew(store):
    make, x, _ = NETS["products"]
    net = make(10).eval().requires_grad_(False)
    expected = pipeline.compile(net, (x,))(x)
    for file in store.cache.disk.folder.iterdir():
        file.write_bytes(file.read_bytes()[:-1] + b"?")
    store.forget()
    assert torch.equal(pipeline.compile(net, (x,))(x), expected)
    assert not store.found
    assert torch.equal(pipeline.compile(net, (x,))(x), expected)
    assert store.found


def test_where_nothing_can_be_kept(tmp_path, monkeypatch):
    """The model is compiled, and a remark says so."""
    monkeypatch.setenv("PIPELINE_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PIPELINE_CACHE_SIZE", "1k")
    make, x, _ = NETS["products"]
    net = make(10).eval().requires_grad_(False)
    compiled = pipeline.compile(net, (x,))
    torch.testing.assert_close(compiled(x), net(x))
    assert any("are more than the cache may take" in remark.reason for remark in compiled.remarks)
    assert not list(tmp_path.iterdir())


def test_a_kernel_with_another_name_in_each_model(store):
    """Those that count the steps of norms in place are numbered with what else adds."""

    def layer(size):
        return nn.Sequential(nn.Conv2d(4, 4, size, padding=size // 2), nn.BatchNorm2d(4))

    class Sum(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([layer(3), layer(1)])

        def forward(self, x):
            return sum(layer(x) for layer in self.layers)

    x, names = torch.randn(2, 4, 7, 6), set()
    for net in (layer(3).train(), Sum().train()):
        own = copy.deepcopy(net)
        shared = pipeline.compile(net, (x,))
        torch.testing.assert_close(shared(x), own(x))
        torch.testing.assert_close(net.state_dict(), own.state_dict())
        names |= {kernel.name for kernel in shared.kernels if kernel.name.startswith("add_")}
    assert names >= {"add_0_in_place", "add_1_in_place"}


def test_users_share_kernels_by_default(tmp_path, monkeypatch):
    monkeypatch.setenv("PIPELINE_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PIPELINE_CACHE_SIZE", "1G")
    make, x, _ = NETS["products"]
    first, second = (make(width).eval().requires_grad_(False) for width in (10, 11))
    pipeline.compile(first, (x,))
    kept = len(list(tmp_path.iterdir()))
    compiled = pipeline.compile(second, (x,))
    assert 1 < len(list(tmp_path.iterdir())) - kept < kept
    torch.testing.assert_close(compiled(x), second(x))
    again = pipeline.compile(second, (x,))  # the whole model is known by now
    assert torch.equal(again(x), compiled(x)) and again.ir("llvm") == compiled.ir("llvm")
