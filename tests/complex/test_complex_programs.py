"""Programs with complex numbers at their borders: arguments, results, weights, files, branches, other front ends."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from complex_support import assert_as_good, compiled
from function_model import Function
from torch import nn

import pipeline


def random(*shape, dtype=torch.complex64, seed=0):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def rotary(q, k, turns):
    """Llama's, as it was first written."""
    q_, k_ = (torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2)) for x in (q, k))
    turns = turns.view(1, q_.shape[1], 1, q_.shape[-1])
    return tuple(torch.view_as_real(x * turns).flatten(3).type_as(q) for x in (q_, k_))


def test_rotary_embeddings():
    q, k = (random(2, 5, 3, 8, dtype=torch.float32, seed=seed) for seed in (1, 2))
    turns = torch.polar(torch.ones(5, 4), random(5, 4, dtype=torch.float32))
    executable = compiled(rotary, q, k, turns)
    assert_as_good(executable(q, k, turns), rotary, (q, k, turns))
    assert_as_good(executable(q, k, turns.conj()), rotary, (q, k, turns.conj().resolve_conj()))


class Spectral(nn.Module):
    """A layer of a Fourier neural operator, with a buffer that it writes to."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(random(3, 4, 5, seed=3))
        self.register_buffer("total", random(4, seed=4).conj())

    def forward(self, x):
        modes = torch.fft.rfft(x)
        mixed = torch.einsum("bix,iox->box", modes[..., :5], self.weight)
        self.total.add_(mixed.sum((0, 2)))
        filled = torch.zeros(x.size(0), 4, x.size(-1) // 2 + 1, dtype=torch.cfloat)
        filled[..., :5] = mixed
        return torch.fft.irfft(filled, n=x.size(-1)), self.total


def test_complex_weights_and_buffers_survive_a_file(tmp_path):
    model, x = Spectral().eval(), random(2, 3, 16, dtype=torch.float32)
    reference = Spectral().eval()
    reference.load_state_dict(model.state_dict())
    executable = pipeline.compile(model, (x,), cache=False)
    executable.save(tmp_path / "spectral.pipeline")
    loaded = pipeline.load(tmp_path / "spectral.pipeline")
    with torch.no_grad():
        for _ in range(2):
            expected = reference(x)
            for got in (executable(x), loaded(x)):
                torch.testing.assert_close(got[0], expected[0])
                torch.testing.assert_close(torch.as_tensor(got[1]), expected[1])
    torch.testing.assert_close(model.total.resolve_conj(), reference.total.resolve_conj())
    assert loaded(x.numpy())[1].dtype == np.complex64


def test_arguments_written_to():
    def program(z, x):
        z.mul_(2j)
        z.real.add_(1)
        z[0] = x[0]
        return z.sum()

    z, x = random(3, 4), random(3, 4, dtype=torch.float32)
    executable = compiled(program, z, x)
    ours, theirs = z.clone(), z.clone()
    torch.testing.assert_close(executable(ours, x), program(theirs, x))
    torch.testing.assert_close(ours, theirs)
    lazy = z.conj().clone().conj()
    executable(lazy, x)
    torch.testing.assert_close(lazy.resolve_conj(), theirs)


def test_numpy_given_places_and_wrong_types():
    def program(z):
        return z * 2j, z

    z = random(3, 5)
    executable = compiled(program, z)
    doubled, same = executable(z.numpy())
    assert doubled.dtype == np.complex64 and same is not None
    np.testing.assert_allclose(doubled, z.numpy() * 2j, rtol=1e-6)
    out = torch.empty(5, 3, dtype=torch.complex64).t()
    executable(z, out=(out, torch.empty(3, 5, dtype=torch.complex64)))
    torch.testing.assert_close(out, z * 2j)
    with pytest.raises(pipeline.PipelineError, match=r"expected complex64\[3, 5\], got float32\[3, 5\]"):
        executable(z.real.contiguous())


def test_results_of_sizes_known_at_run_time():
    def program(z):
        return torch.cat([z, z.conj()], 0), z * z

    executable = compiled(program, random(4, 3), dynamic_shapes=(({0: torch.export.Dim("n", max=50)},),))
    for size in (1, 6):
        args = (random(size, 3, seed=size),)
        assert_as_good(executable(*args), program, args)


def test_branches_and_loops_carry_complex_numbers():
    def program(z, x):
        turned = torch.cond(x.sum() > 0, lambda a: (a * 1j,), lambda a: (a.conj().clone(),), (z,))[0]
        _, power = torch.while_loop(
            lambda step, value: step < 3, lambda step, value: (step + 1, value * z), (torch.tensor(0), turned)
        )
        return power

    z = random(3)
    executable = compiled(program, z, torch.ones(2))
    for x in (torch.ones(2), -torch.ones(2)):
        value = z * 1j if x.sum() > 0 else z.conj()
        torch.testing.assert_close(executable(z, x), value * z * z * z)


def test_torch_compile():
    def program(z, x):
        return torch.fft.ifft(torch.fft.fft(z) * x).imag, z.conj() @ z.mT

    args = random(4, 6), random(4, 6, dtype=torch.float32)
    with torch.no_grad():
        got = torch.compile(program, backend="pipeline")(*args)
    assert_as_good(got, program, args)


def test_what_has_no_rule_is_named_with_its_line():
    with pytest.raises(
        pipeline.UnsupportedOpError, match=r"linalg_matrix_exp at .*\.py:\d+: is not supported on complex"
    ):
        pipeline.compile(Function(lambda z: torch.linalg.matrix_exp(z)), (random(3, 3),), cache=False)


def test_half_complex_numbers_are_refused():
    with pytest.raises(pipeline.PipelineError, match="complex32"):
        pipeline.compile(Function(lambda z: z + 1), (random(3).to(torch.complex32),), cache=False)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (1j * x).abs(),
        lambda x: torch.exp(1j * x).real,
        lambda x: (x * (2 + 1j)).imag,
        lambda x: (x / (1 - 2j)).abs(),
        lambda x: (1j / x).abs(),
        lambda x: (x - 1j).angle(),
        lambda x: (x * torch.tensor(2 + 1j)).imag,
        lambda x: (x + torch.tensor([1j, 2, 3j, 4, 5j, 6, 7j])).abs(),
    ],
)
def test_gradients_of_complex_numbers_in_the_text(function):
    x = random(7, dtype=torch.float32).requires_grad_()
    mine, theirs = (run(x) for run in (torch.compile(function, backend="pipeline"), function))
    torch.testing.assert_close(mine, theirs)
    torch.testing.assert_close(*(torch.autograd.grad(result.sum(), x)[0] for result in (mine, theirs)))


def test_permuted_complex_results_of_graphs_that_torch_runs():
    x = random(10, 10, 6).requires_grad_()

    def signal(x):
        return torch.istft(x, 10, center=False)

    mine, theirs = (run(x) for run in (torch.compile(signal, backend="pipeline"), signal))
    torch.testing.assert_close(mine, theirs)
    torch.testing.assert_close(*(torch.autograd.grad(result.sin().sum(), x)[0] for result in (mine, theirs)))
