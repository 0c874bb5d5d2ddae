"""Random numbers: the distributions are torch's, and so is what seeds them."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from function_model import Function
from torch import nn
from torch.export import Dim

import pipeline
from pipeline.frontend.decompositions import random_op

N = 40_000
X = torch.zeros(200, 200)
THIRD = torch.full((200, 200), 0.3)


def compiled(function, *args, **options):
    return pipeline.compile(Function(function).train(), args, **options)


def test_the_generator_is_philox():
    """The first words of the known answers of Random123 for philox4x32-10, with counter and key 0, and all ones."""
    exe = compiled(lambda x: random_op.random(x), torch.zeros(1, dtype=torch.int64))
    exe._fast._draw = lambda: 0
    assert exe(torch.zeros(1, dtype=torch.int64)).item() % 2**64 == 0xE169C58D6627E8D5
    assert reference(0, [0, 0, 0, 0])[:2] == (0x6627E8D5, 0xE169C58D)
    assert reference(-1, [2**32 - 1] * 4)[:2] == (0x408F276D, 0x41C83B0E)


def reference(seed, counter):
    """Philox4x32-10 as its authors write it."""
    key = [seed % 2**32, seed // 2**32 % 2**32]
    for _ in range(10):
        left, right = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [
            right >> 32 ^ counter[1] ^ key[0],
            right % 2**32,
            left >> 32 ^ counter[3] ^ key[1],
            left % 2**32,
        ]
        key = [(key[0] + 0x9E3779B9) % 2**32, (key[1] + 0xBB67AE85) % 2**32]
    return tuple(counter)


@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (5, 7), (2, 3, 17), (1000,)])
@pytest.mark.parametrize("threads", [1, None])
def test_each_element_is_a_function_of_its_place_and_the_seed(shape, threads):
    like = torch.zeros(shape, dtype=torch.int64)
    exe = compiled(lambda x: (x + 1, random_op.random(x)), like, num_threads=threads)
    exe._fast._draw = lambda: 0x0123456789ABCDEF
    words = [reference(0x0123456789ABCDEF, [place, 0, 0, 0])[:2] for place in range(like.numel())]
    wanted = np.array([first | second << 32 for first, second in words], np.uint64).view(np.int64)
    np.testing.assert_array_equal(exe(like)[1].flatten().numpy(), wanted)


#: A function of X, and the mean and the variance of its elements.
MOMENTS = {
    "rand": (lambda x: torch.rand(200, 200), 0.5, 1 / 12),
    "rand_like": (lambda x: torch.rand_like(x), 0.5, 1 / 12),
    "rand in float64": (lambda x: torch.rand(200, 200, dtype=torch.float64), 0.5, 1 / 12),
    "rand in bfloat16": (lambda x: torch.rand_like(x, dtype=torch.bfloat16), 0.5 - 2**-9, 1 / 12),
    "randn": (lambda x: torch.randn(200, 200), 0, 1),
    "randn_like": (lambda x: torch.randn_like(x), 0, 1),
    "randn in float64": (lambda x: torch.randn(200, 200, dtype=torch.float64), 0, 1),
    "uniform_": (lambda x: x.clone().uniform_(2, 5), 3.5, 9 / 12),
    "normal_": (lambda x: x.clone().normal_(2, 3), 2, 9),
    "normal of tensors": (lambda x: torch.normal(x + 2, x + 3), 2, 9),
    "normal of a size": (lambda x: torch.normal(2.0, 3.0, (200, 200)), 2, 9),
    "exponential_": (lambda x: x.clone().exponential_(2.0), 0.5, 0.25),
    "geometric_": (lambda x: x.clone().geometric_(0.3), 1 / 0.3, 0.7 / 0.09),
    "log_normal_": (lambda x: x.clone().log_normal_(0.5, 0.25).log(), 0.5, 0.0625),
    "cauchy_": (lambda x: (x.clone().cauchy_(1.0, 2.0) > 3).float(), 0.25, 0.1875),
    "bernoulli": (lambda x: torch.bernoulli(THIRD), 0.3, 0.21),
    "bernoulli of a number": (lambda x: torch.bernoulli(x, 0.3), 0.3, 0.21),
    "bernoulli_": (lambda x: x.clone().bernoulli_(0.3), 0.3, 0.21),
    "randint": (lambda x: torch.randint(-3, 9, (200, 200)), 2.5, 143 / 12),
    "randint_like": (lambda x: torch.randint_like(x, 9), 4, 80 / 12),
    "random_": (lambda x: x.clone().random_(9), 4, 80 / 12),
    "dropout": (lambda x: F.dropout(x + 1, 0.3, True), 1, 0.3 / 0.7),
    "dropout of all": (lambda x: F.dropout(x + 1, 1.0, True), 0, 0),
    "alpha_dropout": (lambda x: F.alpha_dropout(torch.randn_like(x), 0.3, True), 0, 1),
    "dropout1d": (lambda x: F.dropout1d((x + 1).view(1, N, 1), 0.3, True), 1, 0.3 / 0.7),
    "rrelu": (lambda x: F.rrelu(x - 1, 0.2, 0.4, True), -0.3, 0.04 / 12),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_moments(name):
    function, mean, variance = MOMENTS[name]
    exe = compiled(function, X)
    torch.manual_seed(0)
    first, second = (exe(X).double().flatten() for _ in range(2))
    assert abs(first.mean() - mean) <= 5 * math.sqrt(variance / N)
    assert abs(first.var() - variance) <= 0.06 * variance
    if variance:
        for one, other in ((first, second), (first[1:], first[:-1]), (first[200:], first[:-200])):
            assert abs(torch.corrcoef(torch.stack((one, other)))[0, 1]) < 5 / math.sqrt(N)


def test_the_shape_of_the_distributions():
    """The greatest distance between the measured and the true distribution function, as in Kolmogorov's test."""
    exe = compiled(lambda x: (torch.rand_like(x), torch.randn_like(x), x.clone().exponential_()), X)
    uniform, normal, exponential = (one.double().flatten().sort().values for one in exe(X))
    wanted = (uniform, torch.special.ndtr(normal), 1 - (-exponential).exp())
    steps = torch.arange(1, N + 1, dtype=torch.float64) / N
    for one in wanted:
        assert (one - steps).abs().max() < 2 / math.sqrt(N)
    assert uniform.min() >= 0 and uniform.max() < 1
    assert exponential.min() > 0 and bool(normal.isfinite().all())


def test_two_ops_of_a_model_are_independent():
    exe = compiled(lambda x: (torch.rand_like(x), torch.rand_like(x)), X)
    one, other = exe(X)
    assert abs(torch.corrcoef(torch.stack((one.flatten(), other.flatten())))[0, 1]) < 5 / math.sqrt(N)


def test_torch_manual_seed():
    exe = compiled(lambda x: F.dropout(x + 1, 0.5, True), torch.zeros(64))
    x = torch.zeros(64)
    torch.manual_seed(3)
    state = torch.get_rng_state()
    first, second = exe(x), exe(x)
    assert not torch.equal(first, second)
    assert not torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(3)
    assert torch.equal(exe(x), first)
    torch.manual_seed(4)
    assert not torch.equal(exe(x), first)
    torch.manual_seed(3)
    assert torch.equal(exe._call((x,), {}, None), first)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        assert torch.equal(exe(x), first)


def test_a_model_without_random_numbers_leaves_the_generator_alone():
    exe = compiled(lambda x: F.dropout(x + 1, 0.5, False), torch.zeros(64))
    state = torch.get_rng_state()
    exe(torch.zeros(64))
    assert torch.equal(torch.get_rng_state(), state)


def test_under_torch_compile():
    model = torch.compile(Function(lambda x: F.dropout(x + 1, 0.5, True)), backend="pipeline")
    with torch.no_grad():
        torch.manual_seed(3)
        first, second = model(X), model(X)
        torch.manual_seed(3)
        assert torch.equal(model(X), first)
    assert not torch.equal(first, second)
    assert abs(first.mean() - 1) < 5 / math.sqrt(N)


def test_rounds_of_loops_draw_others():
    def drawn(x):
        def outer(i, x):
            def inner(j, row):
                return j + 1, torch.cat((row[1:], torch.rand_like(row[:1])))

            row = torch.while_loop(lambda j, row: j < 3, inner, (torch.tensor(0), x[0]))[1]
            return i + 1, torch.cat((x[1:], row[None]))

        return torch.while_loop(lambda i, x: i < 4, outer, (torch.tensor(0), x))[1]

    x = torch.zeros(4, 3)
    exe = compiled(drawn, x)
    torch.manual_seed(3)
    numbers = exe(x)
    assert len(set(numbers.flatten().tolist())) == 12 and bool((numbers > 0).all())
    torch.manual_seed(3)
    assert torch.equal(exe(x), numbers)


def test_dynamic_sizes_draw_the_same_numbers_by_place():
    exe = compiled(lambda x: torch.rand_like(x), torch.zeros(5, 4), dynamic_shapes={"args": ((({0: Dim("n")}),))})
    torch.manual_seed(3)
    few = exe(torch.zeros(5, 4))
    torch.manual_seed(3)
    assert torch.equal(exe(torch.zeros(9, 4))[:5], few)


_WITHOUT_TORCH = """
import sys, numpy as np, pipeline
exe = pipeline.load(sys.argv[1])
x = np.zeros(8, np.float32)
first = exe(x)
pipeline.manual_seed(3)
again = exe(x), exe(x)
pipeline.manual_seed(3)
assert (exe(x) == again[0]).all() and (again[0] != again[1]).any()
assert "torch" not in sys.modules
import os
reader, writer = os.pipe()
if os.fork() == 0:
    os.write(writer, exe(x).tobytes())
    os._exit(0)
os.wait()
print(first.tolist(), (np.frombuffer(os.read(reader, 32), np.float32) == exe(x)).all())
"""


def test_artifacts_without_torch(tmp_path):
    compiled(lambda x: torch.rand_like(x), torch.zeros(8)).save(tmp_path / "model.pipeline")
    said = [
        subprocess.run(
            [sys.executable, "-c", _WITHOUT_TORCH, str(tmp_path / "model.pipeline")],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ,
        ).stdout
        for _ in range(2)
    ]
    assert said[0] != said[1] and all("False" in one for one in said)


class Noisy(torch.utils.data.Dataset):
    """Draws its elements with an executable."""

    def __init__(self, exe):
        self.exe = exe

    def __len__(self):
        return 8

    def __getitem__(self, number):
        return self.exe(torch.zeros(4))


def test_workers_of_a_data_loader_differ():
    exe = compiled(lambda x: torch.rand_like(x), torch.zeros(4))
    exe(torch.zeros(4))
    batches = list(torch.utils.data.DataLoader(Noisy(exe), batch_size=1, num_workers=2))
    assert len({tuple(batch.flatten().tolist()) for batch in batches}) == 8


def test_vulkan_and_the_cpu_draw_the_same():
    x = torch.zeros(7, 9)
    one, other = (compiled(lambda x: torch.rand_like(x), x, target=target) for target in ("cpu", "vulkan"))
    torch.manual_seed(3)
    wanted = one(x)
    torch.manual_seed(3)
    assert torch.equal(other(x), wanted)


def test_dropout_in_a_model():
    model = nn.Sequential(nn.Linear(8, 200), nn.Dropout(0.25), nn.Linear(200, 3)).train()
    x = torch.randn(5, 8)
    exe = pipeline.compile(model, (x,))
    mean = torch.stack([exe(x) for _ in range(2000)]).mean(0)
    torch.testing.assert_close(mean, model.eval()(x), atol=0.05, rtol=0)
