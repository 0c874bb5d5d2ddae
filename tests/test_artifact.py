"""Artifacts: what is saved comes back, and what is no artifact for this machine is refused with a clear error."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
import torch
from safetensors import safe_open
from torch import nn

import pipeline
from pipeline import ArtifactError
from pipeline.runtime.mapped_file import checksum

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x, flag=None):
        self.calls.add_(1)
        return {"y": torch.relu(self.linear(x)), "rest": (x, None, 3)}


@pytest.fixture(scope="module")
def net():
    return Net().eval().requires_grad_(False)


@pytest.fixture(scope="module")
def artifact(net, tmp_path_factory):
    path = tmp_path_factory.mktemp("artifact") / "net.pipeline"
    pipeline.compile(net, (torch.randn(2, 4),)).save(path)
    return path


KEY = "pipeline artifact"


def parts(path):
    """The header and the tensors of an artifact."""
    with safe_open(path, "numpy") as file:
        return json.loads(file.metadata()[KEY]), {name: file.get_tensor(name) for name in sorted(file.keys())}


def rewritten(path, target, code=None, **changes):
    """A copy of an artifact with another header, or another manifest of the code, and a digest that fits."""
    header, tensors = parts(path)
    header["manifest"]["code"].update(code or {})
    manifest = json.dumps(header["manifest"], sort_keys=True).encode()
    header["sha256"] = hashlib.sha256(manifest + tensors["code/0"].tobytes()).hexdigest()
    safetensors.numpy.save_file(tensors, target, {KEY: json.dumps(header | changes)})
    return target


def test_round_trip(net, artifact):
    x = torch.randn(2, 4)
    loaded = pipeline.load(artifact)
    result = loaded(x)
    torch.testing.assert_close(result["y"], torch.relu(net.linear(x)))
    assert result["rest"][0] is x
    assert result["rest"][1:] == (None, 3)
    array = loaded(x.numpy())["y"]
    assert isinstance(array, np.ndarray)
    np.testing.assert_array_equal(array, result["y"].numpy())


def test_what_was_compiled_in_is_there(artifact):
    loaded = pipeline.load(artifact)
    assert "matmul" in [kernel.kind for kernel in loaded.kernels]
    torch.testing.assert_close(loaded(x=np.ones((2, 4), np.float32), flag=None)["rest"][2], 3)
    with pytest.raises(pipeline.PipelineError, match="has none"):
        loaded.ir("linalg")


def test_equal_executables_make_equal_files(net, tmp_path):
    for name in ("one", "two"):
        pipeline.compile(net, (torch.randn(2, 4),)).save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


class Wide(nn.Module):
    """A weight of 16 MB that is prepared, and one that a call reads as it is, which it changes."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2048, 2048)
        self.register_buffer("total", torch.zeros(4, 2048))

    def forward(self, x):
        self.total.add_(self.linear(x))
        return self.total * 1


LOAD = """
import re, sys
import numpy as np
import pipeline
def mapped():
    with open("/proc/self/smaps") as maps:
        return int(re.search(re.escape(sys.argv[1]) + r".*?Rss: *(\\d+) kB", maps.read(), re.DOTALL)[1])
exe = pipeline.load(sys.argv[1])
x = np.ones((4, 2048), np.float32)
first = mapped()
one, two = exe(x), exe(x)
np.testing.assert_allclose(two, 2 * one, rtol=1e-6)
exe.refresh()
np.testing.assert_allclose(exe(x), 3 * one, rtol=1e-5)
print(first, mapped(), exe.memory.unread)
"""


def test_weights_of_which_something_was_prepared_stay_in_the_file(tmp_path):
    exe = pipeline.compile(Wide().requires_grad_(False), (torch.ones(4, 2048),))
    exe.save(tmp_path / "wide")
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(tmp_path / "wide")], capture_output=True, text=True, check=True
    )
    first, after, unread = map(int, done.stdout.split())
    assert unread == exe.memory.unread == 4 * 2048 * 2048
    assert exe.memory.total < exe.memory.weights + exe.memory.prepared + exe.memory.code + (1 << 20)
    assert max(first, after) < 1024  # of 16 MB; in kB


def test_a_file_that_is_replaced_while_it_is_in_use(net, tmp_path):
    path, x = tmp_path / "net", torch.randn(2, 4)
    pipeline.compile(net, (x,)).save(path)
    loaded = pipeline.load(path)
    before = loaded(x)["y"]
    loaded.save(path)
    loaded.refresh()
    assert torch.equal(loaded(x)["y"], before)
    assert torch.equal(pipeline.load(path)(x)["y"], before)


def test_saving_again_keeps_everything(artifact, tmp_path):
    pipeline.load(artifact).save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == artifact.read_bytes()


def test_the_state_is_saved_and_goes_on(tmp_path):
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(2))

        def forward(self, x):
            self.total.add_(x)
            return self.total * 1

    exe = pipeline.compile(Counter(), (torch.ones(2),))
    exe(torch.ones(2))
    exe.save(tmp_path / "counter")
    loaded = pipeline.load(tmp_path / "counter")
    for expected in (2, 3):
        np.testing.assert_array_equal(loaded(np.ones(2, np.float32)), [expected, expected])


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(tmp_path, dtype):
    kind = getattr(torch, dtype)

    class Join(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("weight", torch.tensor([0, 1, 3]).to(kind))

        def forward(self, x):
            return torch.cat([x, self.weight])

    x = torch.tensor([1, 0]).to(kind)
    exe = pipeline.compile(Join(), (x,))
    exe.save(tmp_path / "join")
    numpy_kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    loaded = pipeline.load(tmp_path / "join")
    result = loaded(np.array([1, 0]).astype(numpy_kind))
    assert result.dtype == numpy_kind
    np.testing.assert_array_equal(
        result.astype(np.float64), np.array([1, 0, 0, 1, 3]).astype(numpy_kind).astype(np.float64)
    )
    torch.testing.assert_close(loaded(x), Join()(x))


def test_weights_can_be_read_by_others(net, artifact):
    tensors = safetensors.numpy.load_file(artifact)
    np.testing.assert_array_equal(tensors["weights/linear.weight"], net.linear.weight.numpy())


def test_dynamic_sizes_and_named_results(tmp_path):
    class Largest(nn.Module):
        def forward(self, x):
            return torch.max(x, 1)

    exe = pipeline.compile(Largest(), (torch.randn(3, 4),), dynamic_shapes=({0: torch.export.Dim("n", max=9)},))
    exe.save(tmp_path / "largest")
    x = torch.randn(5, 4)
    result = pipeline.load(tmp_path / "largest")(x)
    assert type(result) is torch.return_types.max
    torch.testing.assert_close(result, torch.max(x, 1))
    with pytest.raises(pipeline.ArgumentError, match="dimension 0 is 10, expected"):
        pipeline.load(tmp_path / "largest")(torch.randn(10, 4))


PROGRAM = """
import sys
import numpy as np
import pipeline
result = pipeline.load(sys.argv[1])(np.ones((2, 4), np.float32))
print(result["y"].shape, result["rest"][1:])
print([name for name in sys.modules if name.split(".")[0] in ("torch", "torch_mlir")])
"""


def test_running_needs_neither_torch_nor_mlir(artifact):
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(artifact)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["(2, 3) (None, 3)", "[]"]


# What is refused.


def test_a_failed_write_leaves_the_old_file(artifact, tmp_path, monkeypatch):
    path = tmp_path / "net.pipeline"
    path.write_bytes(b"old")

    def fail(tensors, metadata):
        yield b"half"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pipeline.runtime.artifact.chunks", fail)
    with pytest.raises(ArtifactError, match=r"net.pipeline: cannot be written: .*No space left"):
        pipeline.load(artifact).save(path)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["net.pipeline"]


def test_a_folder_that_is_absent(artifact, tmp_path):
    with pytest.raises(ArtifactError, match="cannot be written"):
        pipeline.load(artifact).save(tmp_path / "absent" / "net.pipeline")


def test_an_existing_file_is_replaced(artifact, tmp_path):
    path = tmp_path / "net.pipeline"
    path.write_bytes(b"old")
    pipeline.load(artifact).save(path)
    assert path.read_bytes() == artifact.read_bytes()


def test_cut_short_anywhere(artifact, tmp_path):
    data = artifact.read_bytes()
    path = tmp_path / "cut"
    for length in (*range(64), *range(64, len(data), max(1, len(data) // 50)), len(data) - 1):
        path.write_bytes(data[:length])
        with pytest.raises(ArtifactError, match="cut"):
            pipeline.load(path)


def test_more_than_the_whole(artifact, tmp_path):
    (tmp_path / "long").write_bytes(artifact.read_bytes() + b"more")
    with pytest.raises(ArtifactError):
        pipeline.load(tmp_path / "long")


def test_a_flipped_byte_in_the_code(artifact, tmp_path):
    data = bytearray(artifact.read_bytes())
    code = parts(artifact)[1]["code/0"].tobytes()
    start = data.index(code)
    for position in range(start, start + len(code), max(1, len(code) // 20)):
        data[position] ^= 1
        (tmp_path / "flipped").write_bytes(data)
        with pytest.raises(ArtifactError, match="damaged"):
            pipeline.load(tmp_path / "flipped")
        data[position] ^= 1


def test_a_flipped_byte_in_a_weight(artifact, tmp_path):
    data = bytearray(artifact.read_bytes())
    for name in ("linear.weight", "linear.bias", "calls"):
        weight = parts(artifact)[1][f"weights/{name}"].tobytes()
        start = data.index(weight)
        for position in (start, start + len(weight) - 1):
            data[position] ^= 128
            (tmp_path / "flipped").write_bytes(data)
            with pytest.raises(ArtifactError, match=f"flipped: the weights {name} are damaged"):
                pipeline.load(tmp_path / "flipped")
            data[position] ^= 128


@pytest.mark.parametrize("size", [0, 1, 7, 8, 100, (1 << 15) - 1, 1 << 15, 3 * (1 << 15) + 5])
def test_checksums(size):
    """Of each byte, wherever it is; and of the order, within a block of 32 KB and of blocks."""
    data = np.random.default_rng(0).integers(0, 256, size).astype(np.uint8)
    known = checksum(data)
    assert checksum(data.copy()) == known
    assert checksum(np.append(data, np.uint8(0))) != known
    for position in {0, size // 3, size // 2, size - 1} if size else ():
        data[position] ^= 4
        assert checksum(data) != known
        data[position] ^= 4
    for step in (8, 1 << 15):
        if size > 2 * step:
            swapped = data.copy()
            swapped[:step], swapped[step : 2 * step] = data[step : 2 * step], data[:step]
            assert checksum(swapped) != known


def test_a_flipped_byte_in_the_header(artifact, tmp_path):
    data = bytearray(artifact.read_bytes())
    header = int.from_bytes(data[:8], "little")
    for position in range(8, 8 + header, max(1, header // 60)):
        data[position] ^= 1
        (tmp_path / "flipped").write_bytes(data)
        with pytest.raises(ArtifactError):
            pipeline.load(tmp_path / "flipped")
        data[position] ^= 1


def test_another_version(artifact, tmp_path):
    with pytest.raises(ArtifactError, match="has version 999, this pipeline reads version .*; compile it again"):
        pipeline.load(rewritten(artifact, tmp_path / "other", version=999))


def test_another_cpu(artifact, tmp_path):
    path = rewritten(artifact, tmp_path / "other", code={"cpu": "future", "required": ["avx2", "avx9000"]})
    with pytest.raises(ArtifactError, match="is for the CPU future; this one lacks avx9000"):
        pipeline.load(path)


def test_another_machine(artifact, tmp_path):
    with pytest.raises(ArtifactError, match="is for pdp11 machines, this one is"):
        pipeline.load(rewritten(artifact, tmp_path / "other", code={"machine": "pdp11"}))


def test_code_that_is_missing(artifact, tmp_path):
    header, tensors = parts(artifact)
    del tensors["code/0"]
    safetensors.numpy.save_file(tensors, tmp_path / "bare", {KEY: json.dumps(header)})
    with pytest.raises(ArtifactError, match="damaged"):
        pipeline.load(tmp_path / "bare")


def test_weights_that_are_missing(artifact, tmp_path):
    header, tensors = parts(artifact)
    safetensors.numpy.save_file({"code/0": tensors["code/0"]}, tmp_path / "bare", {KEY: json.dumps(header)})
    with pytest.raises(ArtifactError, match="weights .*linear.weight.* missing"):
        pipeline.load(tmp_path / "bare")


def test_what_is_no_artifact(tmp_path):
    (tmp_path / "text").write_text("hello")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "random").write_bytes(bytes(range(256)) * 10)
    safetensors.numpy.save_file({"x": np.ones(2)}, tmp_path / "tensors")
    torch.save({}, tmp_path / "checkpoint")
    messages = {"tensors": "a safetensors file, but no artifact", "absent": "cannot be read"}
    for name in ("text", "empty", "random", "tensors", "checkpoint", "absent", "."):
        with pytest.raises(ArtifactError, match=messages.get(name)):
            pipeline.load(tmp_path / name)
