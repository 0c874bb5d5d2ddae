"""Artifacts that hold what is prepared: the same results, without the weights behind it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import pipeline


class Counting(nn.Module):
    """A norm that is folded, products, a buffer that a call reads and writes, and one that it only writes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 32, 3), nn.BatchNorm2d(32)
        self.head = nn.Linear(32, 200)
        self.register_buffer("calls", torch.zeros(1))
        self.register_buffer("last", torch.zeros(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.head(self.norm(self.conv(x)).relu().mean((2, 3)))
        self.calls.add_(1)
        self.last.copy_(y[:, 0])
        return y + self.calls


def randomized() -> Counting:
    """The model with a norm that does something."""
    torch.manual_seed(0)
    model = Counting().eval()
    for statistic in (model.norm.running_mean, model.norm.running_var):
        statistic.uniform_(0.5, 2)
    return model


def saved(executable: pipeline.Executable, path: Path) -> pipeline.Executable:
    """What comes back of a prepacked artifact."""
    executable.save(path, prepacked=True)
    return pipeline.load(path)


def test_results_and_buffers_that_are_written(tmp_path: Path) -> None:
    model, x = randomized(), torch.randn(2, 3, 9, 9)
    executable = pipeline.compile(model, (x,))
    loaded = saved(executable, tmp_path / "net")
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(torch.as_tensor(loaded(x)), model(x), rtol=1e-5, atol=1e-5)
    names = {weight.name for weight in loaded.signature.weights}
    assert names >= {"calls", "last"} and any(name.startswith("@prepare.") for name in names)
    assert not {"norm.weight", "conv.weight"} & {weight.name for weight in loaded.signature.weights}


@pytest.mark.parametrize("group", [None, 32])
def test_quantized_weights_leave_no_copy_in_floats(tmp_path: Path, group: int | None) -> None:
    model, x = nn.Linear(512, 512, bias=False), torch.randn(3, 512)
    executable = pipeline.compile(model, (x,), weights="int8", group=group)
    loaded = saved(executable, tmp_path / "net")
    assert np.array_equal(loaded(x.numpy()), executable(x).numpy())
    assert (tmp_path / "net").stat().st_size < 1.2 * model.weight.numel() + 60_000
    assert {str(weight.type.dtype) for weight in loaded.signature.weights} == {"int8", "float32"}


def test_symbolic_sizes_threads_and_pickles(tmp_path: Path) -> None:
    import pickle

    model, x = nn.Sequential(nn.Linear(96, 300), nn.GELU(), nn.Linear(300, 70)).eval(), torch.randn(3, 96)
    executable = pipeline.compile(model, (x,), dynamic_shapes=({0: torch.export.Dim("rows", max=64)},))
    loaded = saved(executable, tmp_path / "net")
    again = saved(loaded, tmp_path / "again")  # nothing is left to prepare
    copied = pickle.loads(pickle.dumps(loaded))
    for rows in (0, 1, 3, 64):
        x = torch.randn(rows, 96)
        for form in (loaded, again, copied):
            torch.testing.assert_close(torch.as_tensor(form(x)), executable(x), rtol=0, atol=0)


def test_a_model_without_weights(tmp_path: Path) -> None:
    executable = pipeline.compile(nn.ReLU(), (torch.randn(3),))
    assert saved(executable, tmp_path / "net")(np.float32([-1, 0, 2])).tolist() == [0, 0, 2]


def test_weights_that_changed_before_it_was_saved(tmp_path: Path) -> None:
    model, x = nn.Linear(96, 300), torch.randn(3, 96)
    executable = pipeline.compile(model, (x,))
    with torch.no_grad():
        model.weight.mul_(2)
        torch.testing.assert_close(torch.as_tensor(saved(executable, tmp_path / "net")(x)), model(x))


def test_there_are_no_weights_to_rebind(tmp_path: Path) -> None:
    model, x = nn.Linear(96, 300), torch.randn(3, 96)
    loaded = saved(pipeline.compile(model, (x,)), tmp_path / "net")
    with pytest.raises(
        pipeline.PipelineError, match=r"weight weight: the model has none of that name; it has .*@prepare"
    ):
        loaded.rebind({"weight": model.weight})


def test_executables_for_gpus_are_refused(tmp_path: Path) -> None:
    executable = pipeline.compile(nn.Linear(4, 4), (torch.randn(3, 4),), target="cuda:sm_90")
    with pytest.raises(pipeline.PipelineError, match="prepacked: executables for GPUs are saved with their weights"):
        executable.save(tmp_path / "net", prepacked=True)


def test_without_torch(tmp_path: Path) -> None:
    model, x = nn.Linear(256, 256), torch.ones(2, 256)
    pipeline.compile(model, (x,), weights="int8").save(tmp_path / "net", prepacked=True)
    program = (
        "import sys; import numpy as np, pipeline;"
        f"print(pipeline.load({str(tmp_path / 'net')!r})(np.ones((2, 256), np.float32)).shape, 'torch' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "(2, 256) False\n"
