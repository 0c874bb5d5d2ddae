"""Ops that cannot be lowered run in torch, between compiled parts of the model."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from disk_cache_entries import outcomes
from function_model import Function
from numerics import differences
from torch import nn
from torch.export import Dim
from torch.utils._pytree import tree_map_only

import pipeline
from pipeline.remarks import collect


@torch.library.custom_op("pipeline_tests::doubled", mutates_args=())
def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


doubled.register_fake(torch.empty_like)


@torch.library.custom_op("pipeline_tests::increment", mutates_args=("x",))
def increment(x: torch.Tensor, amount: float) -> None:
    x.add_(amount)


@torch.library.custom_op("pipeline_tests::strides", mutates_args=())
def strides(x: torch.Tensor) -> torch.Tensor:
    return torch.tensor(x.stride(), dtype=torch.float32)


strides.register_fake(lambda x: torch.empty(x.dim()))


@torch.library.custom_op("pipeline_tests::keep", mutates_args=())
def keep(boxes: torch.Tensor) -> torch.Tensor:
    """As nms of detection libraries: the indices of some rows, as many as the numbers say."""
    return torch.nonzero(boxes[:, 0] > 0)[:, 0]


@keep.register_fake
def _(boxes: torch.Tensor) -> torch.Tensor:
    return boxes.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=torch.int64)


class Around(nn.Module):
    """A function between ordinary ops: a linear layer and tanh in front of it, arithmetic behind."""

    def __init__(self, function):
        super().__init__()
        torch.manual_seed(7)
        self.linear = nn.Linear(4, 4)
        self.function = function

    def forward(self, x):
        y = self.function(torch.tanh(self.linear(x)) + 1)
        values = y if isinstance(y, (tuple, list)) else [y]
        return [torch.relu(value.float()) * 2 + 1 for value in values]


def compiled(model, *args, **options):
    return pipeline.compile(model, args, fallback="torch", **options)


def check(model, *args, **options):
    """Compiles and compares with eager, twice; returns the executable."""
    executable = compiled(model, *args, **options)
    for _ in range(2):
        with torch.no_grad():
            torch.manual_seed(3)
            expected = model(*args)
        torch.manual_seed(3)
        torch.testing.assert_close(_comparable(executable(*args)), _comparable(expected), rtol=1e-4, atol=1e-5)
    return executable


def _comparable(values):
    """Floats of 8 bits as wider ones, which assert_close can compare with a tolerance."""
    return tree_map_only(torch.Tensor, lambda x: x.float() if x.dtype.itemsize == 1 else x, values)


def inverse(y):
    """Of a square matrix, by an op that torch runs."""
    return torch.linalg.solve(y, torch.eye(y.size(-1)), left=False)


def positive(y):
    return y @ y.mT + torch.eye(4)


def incremented(y):
    y = y.clone()
    torch.ops.pipeline_tests.increment(y, 1.5)
    return y


def ctc_loss(y):
    lengths = torch.tensor([4]), torch.tensor([2])
    return nn.functional.ctc_loss(y.log_softmax(-1)[:, None], torch.tensor([[1, 2, 3]]), *lengths)


def ctc_loss_of_joined_targets(y):
    """Two sequences, whose lengths are numbers."""
    both = y.log_softmax(-1)[:, None].expand(4, 2, 4)
    return nn.functional.ctc_loss(both, torch.tensor([1, 2, 3]), (4, 3), (2, 1), reduction="none")


FUNCTIONS = {
    "solve from the right": (lambda y: torch.linalg.solve(positive(y), y, left=False), "linalg_solve"),
    "matrix_exp": (torch.linalg.matrix_exp, "linalg_matrix_exp"),
    "svd": (lambda y: torch.linalg.svd(y).S, "linalg_svd"),
    "qr": (lambda y: torch.linalg.qr(y), "linalg_qr"),
    "eigh": (lambda y: torch.linalg.eigvalsh(y + y.mT), "linalg_eigh"),
    "lstsq": (lambda y: torch.linalg.lstsq(y.exp(), y).solution, "linalg_lstsq"),
    "ctc_loss": (ctc_loss, "_ctc_loss"),
    "ctc_loss of joined targets": (ctc_loss_of_joined_targets, "_ctc_loss"),
    "custom": (lambda y: torch.ops.pipeline_tests.doubled(y), "doubled"),
    "custom that writes": (incremented, "auto_functionalized"),
    "poisson": (lambda y: torch.poisson(y.abs()), "poisson"),
    "float8": (lambda y: y.to(torch.float8_e4m3fnuz).float(), "convert_element_type"),
    "detection": (lambda y: y[torch.ops.pipeline_tests.keep(y - 1)], "keep"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_op_between_ordinary_ones(name):
    function, op = FUNCTIONS[name]
    executable = check(Around(function), torch.randn(4, 4))
    assert any(op in fallback.op for fallback in executable.fallbacks)
    assert all(fallback.source.startswith(__file__) and fallback.reason for fallback in executable.fallbacks)
    assert {"matmul"} <= {kernel.kind for kernel in executable.kernels}, "what is around is compiled"


def test_what_can_be_lowered_has_no_fallback():
    executable = check(Around(torch.sin), torch.randn(4, 4))
    assert executable.fallbacks == ()
    assert type(executable) is pipeline.runtime.executable.Executable


def test_remarks_and_the_text_of_an_executable_name_the_op_its_line_and_the_reason():
    with collect() as remarks:
        executable = compiled(Around(inverse), torch.randn(4, 4))
    (remark,) = [remark for remark in remarks if remark.pass_name == "fallback"]
    assert remark.kind == "missed" and remark.op == "aten._linalg_solve_ex" and remark.source.startswith(__file__)
    assert remark in executable.remarks
    text = str(executable)
    assert "run by torch: 1" in text and str(executable.fallbacks[0]) in text
    mains = [kernel.name for kernel in executable.kernels if kernel.entry == "main"]
    assert f"{len(mains)} of @main, called in " in text and all(name in text for name in mains)
    assert "run by torch: nothing" in str(compiled(nn.ReLU(), torch.ones(2)))


def test_error_lists_the_ops():
    with pytest.raises(pipeline.UnsupportedOpError, match=r"linalg_solve.* at .*test_fallback.py"):
        pipeline.compile(Around(inverse), (torch.randn(4, 4),), fallback="error")
    with pytest.raises(pipeline.OptionError, match="fallback='eager': expected one of torch, error"):
        pipeline.compile(nn.ReLU(), (torch.ones(2),), fallback="eager")


def test_saving_is_one_error_that_lists_the_ops(tmp_path):
    executable = compiled(Around(inverse), torch.randn(4, 4))
    with pytest.raises(
        pipeline.PipelineError, match=r"(?s)cannot be saved; torch runs 1 op.*_linalg_solve_ex at .*\.py"
    ):
        executable.save(tmp_path / "model.pipeline")
    assert not list(tmp_path.iterdir())


def test_parts_alternate_with_ops():
    class Chain(nn.Module):
        def forward(self, x):
            a = inverse(x.sin() + 3 * torch.eye(3))
            b = torch.linalg.qr(a * 2 + 1)[0]
            return inverse(b.exp() + 3 * torch.eye(3)) - a, b.sum() + x.cos().sum()

    executable = check(Chain(), torch.randn(3, 3))
    assert len(executable.fallbacks) == 3
    assert len(executable.parts) == 4


@torch.library.custom_op("pipeline_tests::same", mutates_args=())
def same(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


same.register_fake(torch.empty_like)

#: What torch takes apart into tensors for numbers, which carry the metadata of the op that they come from.
BESIDE_NUMBERS = [
    lambda x: torch.bitwise_xor(x.long(), 5),
    lambda x: torch.bitwise_or(5, x.long()),
    lambda x: x.long() & 6,
    lambda x: x.long() << 2,
    lambda x: torch.pow(2.5, x),
    lambda x: torch.remainder(7.5, x),
    lambda x: torch.copysign(x, -2.0),
    lambda x: torch.where(x > 1, x, 3.0),
    lambda x: torch.where(x > 1, 3, 4),
    lambda x: torch.xlogy(x, 2.0),
    lambda x: torch.fmod(x, 2),
    lambda x: torch.float_power(x, 2),
    lambda x: torch.heaviside(x - 2, torch.tensor(0.5)),
    lambda x: torch.maximum(x, torch.tensor(2.0)),
    lambda x: torch.isin(x, 2.0),
    lambda x: torch.ldexp(x, torch.tensor(2)),
    lambda x: x.masked_fill(x > 1, 9).index_fill(0, torch.tensor([1]), 4.0),
    lambda x: torch.searchsorted(torch.tensor([1.0, 2.0]), x),
]


def test_numbers_beside_what_torch_computes():
    model = Function(lambda x: [form(same(x)) for form in BESIDE_NUMBERS])
    x = torch.tensor([0.5, 1.0, 2.0, 3.0, 4.0])
    executable = pipeline.compile(model, (x,), fallback="torch")
    assert executable.fallbacks and not differences(executable(x), model(x))
    bits = Function(lambda x: torch.bitwise_xor(x.view(torch.int64), 5))
    whole = torch.tensor([7, 8, 9, 10]).to(torch.uint64)
    assert pipeline.compile(bits, (whole,), fallback="torch")(whole).tolist() == [2, 13, 12, 15]


def test_mutation_of_buffers_and_arguments():
    class Mutating(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(3, 3))
            self.register_buffer("count", torch.zeros((), dtype=torch.int64))

        def forward(self, x, y):
            inverted = inverse(x)
            self.mean.lerp_(inverted, 0.5)
            self.count += 1
            y.add_(self.mean)
            return inverted * self.count, y

    x = torch.randn(3, 3) + 3 * torch.eye(3)
    eager, ours = Mutating(), Mutating()
    executable = compiled(ours, x, torch.zeros(3, 3))
    mine, theirs = torch.ones(3, 3), torch.ones(3, 3)
    for _ in range(3):
        result, expected = executable(x, mine), eager(x, theirs)
        torch.testing.assert_close(result, expected)
        assert result[1] is mine
        torch.testing.assert_close(mine, theirs)
        torch.testing.assert_close(dict(ours.named_buffers()), dict(eager.named_buffers()))


def test_results_share_no_memory_with_arguments():
    class Views(nn.Module):
        def forward(self, x):
            return torch.ops.pipeline_tests.doubled(x), x.T, x[0]

    x = torch.randn(3, 3)
    doubled_x, transposed, row = compiled(Views(), x)(x)
    expected = x.clone()
    x.zero_()
    torch.testing.assert_close(transposed, expected.T)
    torch.testing.assert_close(row, expected[0])
    torch.testing.assert_close(doubled_x, expected * 2)


def test_symbolic_sizes():
    class Sized(nn.Module):
        def forward(self, x, y):
            batch, rows = x.shape[0], x.shape[1]
            flat = torch.cat([x.sin(), y], 1).reshape(batch * (rows + y.shape[1]), -1)
            gram = inverse(flat.mT @ flat + torch.eye(4))
            return (flat @ gram).reshape(batch, -1, 4) * rows, torch.zeros(rows, 2) + batch

    batch, rows, more = Dim("batch"), Dim("rows"), Dim("more")
    x, y = torch.randn(3, 5, 4), torch.randn(3, 2, 4)
    shapes = ({0: batch, 1: rows}, {0: batch, 1: more})
    executable = compiled(Sized(), x, y, dynamic_shapes=shapes)
    assert len(executable.fallbacks) == 1
    for batch_size, row_count, more_rows in ((3, 5, 2), (1, 2, 7), (6, 3, 3)):
        x, y = torch.randn(batch_size, row_count, 4), torch.randn(batch_size, more_rows, 4)
        torch.testing.assert_close(executable(x, y), Sized()(x, y), rtol=1e-4, atol=1e-5)
    with pytest.raises(pipeline.ArgumentError, match="dimension 0"):
        executable(torch.randn(3, 5, 4), torch.randn(4, 2, 4))


def test_sizes_that_the_data_decides():
    class Selected(nn.Module):
        def forward(self, x):
            kept = x[x.sum(1) > 0]
            return (kept.exp() @ torch.ones(4, 3)).sum(0), kept * 2

    x = torch.randn(6, 4)
    executable = compiled(Selected(), x)
    for x in (torch.randn(6, 4), torch.ones(6, 4), -torch.ones(6, 4)):
        torch.testing.assert_close(executable(x), Selected()(x))


def test_branches_and_loops_run_as_a_whole():
    class Regions(nn.Module):
        def forward(self, x):
            y = x.sin() + 3 * torch.eye(3)
            first = torch.cond(y.sum() > 0, lambda v: torch.special.bessel_j0(v) + 1, lambda v: v * 2, (y,))
            count = torch.zeros((), dtype=torch.int64)
            _, second = torch.while_loop(
                lambda n, v: n < 3, lambda n, v: (n + 1, torch.special.bessel_j0(v)), (count, first.cos() + y)
            )
            return first * 2, second + 1

    for x in (torch.randn(3, 3), -9 * torch.ones(3, 3)):
        executable = check(Regions(), x)
        assert [fallback.op for fallback in executable.fallbacks] == ["cond", "while_loop"]


def test_random_ops_take_turns_as_in_eager():
    class Random(nn.Module):
        def forward(self, x):
            a = torch.poisson(x.abs() + 1)
            b = torch.binomial(x.new_full((5,), 9.0), x.new_full((5,), 0.4))
            return a + 1, b * 2, torch.poisson(x.exp())

    check(Random(), torch.randn(3, 4))


def test_kernels_of_others_see_the_strides_of_capture():
    class ChannelsLast(nn.Module):
        def forward(self, x):
            return torch.ops.pipeline_tests.strides((x * 2).contiguous(memory_format=torch.channels_last)) + 1

    check(ChannelsLast(), torch.randn(2, 3, 4, 5))


def test_an_error_of_an_op_names_its_line():
    executable = compiled(Around(lambda y: torch.linalg.eigvalsh(y * torch.nan)), torch.randn(4, 4))
    with pytest.raises(pipeline.PipelineError, match=r"aten._linalg_eigh.* at .*test_fallback.py:\d+: .*"):
        executable(torch.randn(4, 4))


def test_numpy_out_kwargs_threads_memory_ir_and_profile():
    class Named(nn.Module):
        def forward(self, x, *, scale):
            return {"y": inverse(x * scale).exp()}

    x, scale = torch.eye(3) * 2, torch.tensor(1.5)
    executable = pipeline.compile(Named(), (x,), {"scale": scale}, fallback="torch")
    expected = Named()(x, scale=scale)["y"]
    result = executable(x.numpy(), scale=scale.numpy())["y"]
    assert isinstance(result, np.ndarray)
    np.testing.assert_allclose(result, expected, rtol=1e-5)
    out = torch.empty(3, 3)
    assert executable(x, scale=scale, out={"y": out})["y"] is out
    torch.testing.assert_close(out, expected)
    executable.num_threads = 1
    assert executable.num_threads == 1
    assert executable.memory.code > 0
    assert executable.ir("linalg").count("func.func @main") == 2
    profile = executable.profile(x, scale=scale, repeats=2)
    assert "_linalg_solve_ex" in str(profile) and any(row.name == executable.kernels[0].name for row in profile.rows)


def test_refresh_and_weights_that_torch_reads():
    class Weighted(nn.Module):
        def __init__(self):
            super().__init__()
            self.matrix = nn.Parameter(torch.eye(4) * 2)
            self.linear = nn.Linear(4, 4)

        def forward(self, x):
            return self.linear(inverse(self.matrix) @ x)

    model, x = Weighted(), torch.randn(4, 4)
    executable = check(model, x)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
    executable.refresh()
    torch.testing.assert_close(executable(x), model(x).detach())


@pytest.mark.parametrize("dtype", [torch.float8_e5m2fnuz, torch.uint16])
def test_arguments_results_and_weights_of_other_dtypes(dtype):
    class Cast(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("weight", torch.arange(4).to(dtype))

        def forward(self, x):
            real = x.real if dtype.is_complex else x.float()
            return (real.tanh() + 1).to(dtype).flatten(), self.weight.to(torch.complex64).real + real.exp()

    assert check(Cast(), torch.arange(4).to(dtype)).fallbacks


def test_torch_compile():
    torch._dynamo.reset()
    model, x = Around(lambda y: inverse(y) + torch.ops.pipeline_tests.doubled(y)).eval(), torch.randn(4, 4)
    with torch.no_grad():
        run = torch.compile(model, backend="pipeline", options={"fallback": "torch"})
        for _ in range(2):
            torch.testing.assert_close(run(x), model(x), rtol=1e-4, atol=1e-5)
    torch._dynamo.reset()


def test_compiled_parts_are_found_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PIPELINE_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PIPELINE_CACHE_SIZE", "1G")
    check(Around(inverse), torch.randn(4, 4))
    entries = set(outcomes(tmp_path))
    assert len(entries) == 2, "one for each part"
    check(Around(inverse), torch.randn(4, 4))
    assert set(outcomes(tmp_path)) == entries
