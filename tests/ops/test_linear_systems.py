"""Small matrices are factorized, solved and inverted by compiled code: as exactly as torch does it, by float64."""

from __future__ import annotations

import pytest
import torch
from function_model import Function
from torch._dynamo.utils import counters
from torch.export import Dim

import pipeline

linalg = torch.linalg


def positive(x):
    return x @ x.mT + torch.eye(x.size(-1), dtype=x.dtype)


FUNCTIONS = {
    "inv": linalg.inv,
    "solve": lambda x: linalg.solve(x, x.sin()[..., :3]),
    "solve for a vector": lambda x: linalg.solve(x, x.sin()[..., 0].contiguous()),
    "solve for several": lambda x: linalg.solve(x[0] if x.dim() > 2 else x, torch.stack([x.cos(), x.sin()])),
    "det": linalg.det,
    "slogdet": lambda x: tuple(linalg.slogdet(x)),
    "cholesky": lambda x: linalg.cholesky(positive(x)),
    "upper cholesky": lambda x: linalg.cholesky(positive(x), upper=True),
    "old cholesky": lambda x: torch.cholesky(positive(x)),
    "cholesky_solve": lambda x: torch.cholesky_solve(x, linalg.cholesky(positive(x))),
    "cholesky_inverse": lambda x: torch.cholesky_inverse(linalg.cholesky(positive(x))),
    "upper triangle": lambda x: linalg.solve_triangular(x, x.sin(), upper=True),
    "lower triangle from the right": lambda x: linalg.solve_triangular(x, x.sin(), upper=False, left=False),
    "unit triangle": lambda x: linalg.solve_triangular(x / 9, x.sin(), upper=False, unitriangular=True),
    "lu_factor": lambda x: tuple(linalg.lu_factor(x)),
}


def matrices(*shape, dtype=torch.float32):
    """Random ones that are not close to singular."""
    generator = torch.Generator().manual_seed(5)
    return torch.randn(shape, dtype=dtype, generator=generator) + 3 * torch.eye(shape[-1], dtype=dtype)


def listed(values):
    return list(values) if isinstance(values, (tuple, list)) else [values]


def check(function, x, executable=None):
    """Compares with eager; errors of floats are at most some times those of eager, by float64."""
    executable = executable or pipeline.compile(Function(function), (x,))
    expected, exact = listed(function(x)), listed(function(x.double()))
    for mine, theirs, best in zip(listed(executable(x)), expected, exact, strict=True):
        assert mine.dtype == theirs.dtype and mine.shape == theirs.shape
        if not mine.is_floating_point():
            assert torch.equal(mine, theirs)
        elif x.dtype == torch.float64:
            torch.testing.assert_close(mine, theirs, rtol=1e-11, atol=1e-11)
        else:
            unit = torch.finfo(x.dtype).eps * (best.abs().amax() + 1)
            assert (mine - best).abs().amax() <= 4 * (theirs - best).abs().amax() + 4 * unit
    return executable


def several(names):
    """The functions with these names as one, which takes less time to compile; it gives all of their results."""
    return lambda x: [result for name in names for result in listed(FUNCTIONS[name](x))]


@pytest.mark.parametrize("first", range(0, len(FUNCTIONS), 5))
def test_batches(first):
    check(several(list(FUNCTIONS)[first : first + 5]), matrices(3, 2, 5, 5))


@pytest.mark.parametrize("size", [1, 2, 64])
def test_sizes(size):
    executable = check(lambda x: (linalg.inv(x), linalg.cholesky(positive(x))), matrices(size, size) + size / 4)
    assert len(executable.kernels) < 20, "rounds are loops"


def test_float64():
    check(several(["inv", "cholesky", "lower triangle from the right"]), matrices(2, 6, 6, dtype=torch.float64))


def test_symbolic_batch():
    def function(x):
        return linalg.inv(x), linalg.det(x), linalg.cholesky(positive(x))

    shapes = (({0: Dim("batch")},),)
    executable = pipeline.compile(Function(function), (matrices(3, 4, 4),), dynamic_shapes=shapes)
    for batch in (3, 1, 6):
        check(function, matrices(batch, 4, 4), executable)


def test_rows_are_exchanged():
    x = torch.tensor([[[0.0, 1, 0], [0, 0, 2], [3, 0, 0]], [[1e-9, 1, 0], [1, 1, 1], [0, -5, 2]]])
    check(lambda x: (linalg.inv(x), linalg.solve(x, x.sin()), linalg.det(x)), x)


def test_strides_of_arguments():
    x = matrices(4, 5, 5)
    for view in (x.permute(1, 2, 0).contiguous().permute(2, 0, 1), x.mT, x[::2]):
        check(linalg.det, view)


def test_views_of_results_that_lie_by_columns():
    check(lambda x: linalg.inv(x).mT.reshape(-1, 4) * linalg.cholesky(positive(x)).mT.view(-1, 4), matrices(2, 4, 4))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (linalg.inv, "linalg.inv: the inversion could not be completed"),
        (lambda x: linalg.solve(x, x), "linalg.solve: the solver failed"),
        (linalg.cholesky, "linalg.cholesky: the factorization could not be completed"),
    ],
    ids=["inv", "solve", "cholesky"],
)
def test_singular(function, message):
    good, bad = torch.eye(3).expand(2, 3, 3).clone(), torch.eye(3).expand(2, 3, 3).clone()
    bad[1] = torch.tensor([[1.0, 2, 3], [2, 4, 6], [0, 0, 1]])
    executable = pipeline.compile(Function(function), (good,))
    executable(good)
    with pytest.raises(RuntimeError):
        function(bad)
    with pytest.raises(pipeline.PipelineError, match=message):
        executable(bad)


def test_singular_without_a_check():
    x = torch.stack([torch.zeros(3, 3), torch.eye(3), torch.tensor([[1.0, 2, 3], [2, 4, 6], [0, 0, 1]])])

    def function(x):
        return (
            linalg.inv_ex(x).info,
            linalg.cholesky_ex(x).info,
            linalg.lu_factor_ex(x).info,
            linalg.det(x).abs(),
            linalg.slogdet(x).logabsdet,
        )

    executable = pipeline.compile(Function(function), (x,))
    torch.testing.assert_close(executable(x), function(x), rtol=0, atol=0)


def test_nan():
    x = torch.eye(3)
    x[1, 0] = torch.nan
    executable = pipeline.compile(Function(lambda x: (linalg.inv(x), linalg.det(x))), (x,))
    torch.testing.assert_close(executable(x), (linalg.inv(x), linalg.det(x)), equal_nan=True)


def test_of_no_elements():
    for shape in ((0, 0), (0, 3, 3), (2, 0, 0)):
        x = torch.zeros(shape)
        function = Function(lambda x: (linalg.inv(x), linalg.cholesky(x)))
        torch.testing.assert_close(pipeline.compile(function, (x,))(x), function(x))


def test_in_a_branch():
    class Branch(torch.nn.Module):
        def forward(self, x):
            return torch.cond(x[0, 0] > 0, lambda x: linalg.inv(x).contiguous() + 1, lambda x: x * 2, (x,))

    x = matrices(3, 3)
    executable = pipeline.compile(Branch(), (x,))
    for one in (x, -x):
        torch.testing.assert_close(executable(one), Branch()(one))
    singular = torch.ones(3, 3)
    torch.testing.assert_close(executable(-singular), -2 * singular)
    with pytest.raises(pipeline.PipelineError, match=r"linalg.inv: .* singular"):
        executable(singular)


def test_branches_that_lie_differently_are_refused_with_advice():
    class Branch(torch.nn.Module):
        def forward(self, x):
            return torch.cond(x[0, 0] > 0, linalg.inv, lambda x: x * 2, (x,))

    with pytest.raises(pipeline.CaptureError, match=r"return them with \.contiguous\(\)"):
        pipeline.compile(Branch(), (matrices(3, 3),))


def test_large_ones_run_in_torch():
    x = matrices(65, 65) + 20 * torch.eye(65)
    executable = pipeline.compile(Function(linalg.inv), (x,), fallback="torch")
    (fallback,) = executable.fallbacks
    assert fallback.op == "aten.linalg_inv_ex" and "64 rows" in fallback.reason
    torch.testing.assert_close(executable(x), linalg.inv(x))
    with pytest.raises(pipeline.PipelineError, match=r"linalg.inv: .* singular"):
        executable(torch.ones(65, 65))


@pytest.mark.parametrize("grad", [False, True])
def test_torch_compile(grad):
    torch._dynamo.reset()
    x = matrices(2, 4, 4).requires_grad_(grad)
    run = torch.compile(lambda x: linalg.inv(x).sum() + linalg.det(x), backend="pipeline")
    expected = linalg.inv(x).sum() + linalg.det(x)
    torch.testing.assert_close(run(x), expected)
    if grad:
        (mine,) = torch.autograd.grad(run(x).sum(), x)
        (theirs,) = torch.autograd.grad(expected.sum(), x)
        torch.testing.assert_close(mine, theirs)
    with pytest.raises(pipeline.PipelineError, match=r"linalg.inv: .* singular"):
        run(torch.ones(2, 4, 4).requires_grad_(grad))


#: Backward of these solves by factors, or takes them apart, which has no lowering: PyTorch runs graphs that have it.
_BACKWARD_IN_EAGER = ("det", "lu_factor", "slogdet", "solve", "solve for a vector", "solve for several")
_COMPILED_BACKWARD = sorted(set(FUNCTIONS) - {"old cholesky", *_BACKWARD_IN_EAGER})


@pytest.mark.parametrize("layout", ["rows", "columns"])
@pytest.mark.parametrize("names", [_BACKWARD_IN_EAGER, _COMPILED_BACKWARD[::2], _COMPILED_BACKWARD[1::2]])
def test_gradients(names, layout):
    """What backward reads of a factorization depends on how the matrix lies in memory."""
    torch._dynamo.reset()
    counters.clear()
    x = matrices(2, 4, 4)
    x = (x if layout == "rows" else x.mT).requires_grad_()

    def functions(x):
        return [listed(FUNCTIONS[name](x)) for name in names]

    def gradients(function):
        losses = [sum((value * value).sum() for value in values if value.is_floating_point()) for values in function(x)]
        return [torch.autograd.grad(loss, x, retain_graph=True)[0] for loss in losses]

    ours, theirs = gradients(torch.compile(functions, backend="pipeline")), gradients(functions)
    assert counters["pipeline"]["backward in eager"] == (names is _BACKWARD_IN_EAGER)
    for name, mine, expected in zip(names, ours, theirs, strict=True):
        torch.testing.assert_close(mine, expected, rtol=1e-3, atol=1e-3, msg=lambda text, name=name: f"{name}: {text}")
