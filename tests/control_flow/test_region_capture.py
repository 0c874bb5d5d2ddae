"""What is refused, and with which words; captures by other ways than a module; sizes that change; torch's defects."""

from __future__ import annotations

import copy

import pytest
import torch
from branch_models import BRANCHES
from loop_models import LOOPS
from numerics import differences
from torch import nn
from torch._higher_order_ops import while_loop
from torch.export import Dim

import pipeline
from pipeline.errors import CaptureError, PipelineError

EXPORTED = {**BRANCHES, **LOOPS}


@pytest.fixture(autouse=True)
def _inference():
    torch.manual_seed(0)
    with torch.no_grad():
        yield


@pytest.mark.parametrize(
    "name",
    ["TwoResults", "Accumulates", "CountingBuffer", "NestedWrites", "WriteThroughView", "ScanOfTrees", "MapOfMatrices"],
)
def test_torch_compile(name):
    kind, argument_sets = EXPORTED[name]
    model = kind().eval()
    eager = copy.deepcopy(model)
    torch._dynamo.reset()
    compiled = torch.compile(model, backend="pipeline")
    for arguments in argument_sets:
        theirs, given = copy.deepcopy(arguments), copy.deepcopy(arguments)
        expected, got = eager(*theirs), compiled(*given)
        assert not differences((got, given, dict(model.state_dict())), (expected, theirs, dict(eager.state_dict())))


@pytest.mark.parametrize("name", ["Accumulates", "WriteToInput"])
def test_exported_programs_stay_as_they_are(name):
    kind, argument_sets = EXPORTED[name]
    model = kind().eval()
    exported = torch.export.export(model, argument_sets[0], strict=False)
    before = str(exported.graph_module.print_readable(print_output=False))
    eager = copy.deepcopy(model)
    executable = pipeline.compile(exported)
    assert str(exported.graph_module.print_readable(print_output=False)) == before
    for arguments in argument_sets:
        theirs, given = copy.deepcopy(arguments), copy.deepcopy(arguments)
        assert not differences((executable(*given), given), (eager(*theirs), theirs))


class Sized(nn.Module):
    """Rounds, and a condition, that depend on a size; a capture that is the first value too."""

    def forward(self, x):
        total = torch.zeros_like(x)

        def body(i, h):
            total.add_(h)
            return i + 1, torch.cond(h.sum() > 0, lambda: h * 0.5, lambda: h - 1)

        h = while_loop(lambda i, h: i < x.shape[0], body, (torch.zeros((), dtype=torch.int64), x))[1]
        return torch.cond(x.shape[0] > 3, lambda x: x.sin(), lambda x: x.cos(), (h,)) + total


def test_dynamic_sizes():
    model = Sized()
    executable = pipeline.compile(model, (torch.randn(3, 4),), dynamic_shapes=({0: Dim.DYNAMIC},))
    for rows in (3, 5, 1, 2):
        x = torch.randn(rows, 4)
        assert not differences(executable(x), model(x)), rows


class OnlyWrites(nn.Module):
    """Inner branches whose results nobody uses: torch's dead code elimination dropped them, writes and all."""

    def forward(self, x):
        y = x + 1
        if bool(x.sum() > 0):  # noqa: SIM102 - one branch in another is what is tested
            if bool(x.max() > 1):
                y.add_(y)
        return y.clamp(-8, 8)


def test_branches_that_only_write_are_kept():
    model = OnlyWrites()
    executable = pipeline.compile(model, (torch.ones(3),), capture="script")
    for x in (torch.tensor([3.0, 0, 0]), torch.ones(3) * 0.5, -torch.ones(3)):
        assert not differences(executable(x), model(x))


class BothWays(nn.Module):
    """A branch that hands on what it got: MLIR makes a select of tensors of it."""

    def forward(self, x, y):
        return torch.cond(x.sum() > 0, lambda: x.clone(), lambda: y.clone(), ()).add(1)


def test_a_branch_that_computes_nothing():
    executable = pipeline.compile(BothWays(), (torch.ones(3), torch.zeros(3)))
    for sign in (1, -1):
        arguments = torch.ones(3) * sign, torch.zeros(3)
        assert not differences(executable(*arguments), BothWays()(*arguments))


class PythonBranch(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x
        return x + 1


def test_python_control_flow_is_one_error_with_both_ways_out():
    with pytest.raises(CaptureError) as error:
        pipeline.compile(PythonBranch(), (torch.ones(3),))
    for part in ("test_region_capture.py:", "torch.cond", "torch.while_loop", 'capture="script"'):
        assert part in str(error.value)


class MayShare(nn.Module):
    def forward(self, x):
        y = x * 2
        z = y
        if bool(x.sum() > 0):
            z = x + 1
        z.add_(1)
        return y + z


def test_a_write_to_what_may_be_shared_is_refused_with_its_line():
    with pytest.raises(CaptureError, match=r"test_region_capture.py:\d+: .*clone it before"):
        pipeline.compile(MayShare(), (torch.ones(3),), capture="script")


class Cloned(MayShare):
    def forward(self, x):
        y = x * 2
        z = y
        if bool(x.sum() > 0):
            z = x + 1
        z = z.clone()
        z.add_(1)
        return y + z


def test_a_clone_is_the_way_out():
    executable = pipeline.compile(Cloned(), (torch.ones(3),), capture="script")
    for sign in (1, -1):
        x = torch.ones(3) * sign
        assert not differences(executable(x), Cloned()(x))


class Growing(nn.Module):
    def forward(self, x, n):
        rows = [x]
        for _ in range(int(n)):
            rows.append(x)  # noqa: PERF401 - TorchScript
        return torch.stack(rows)


class OtherTypes(nn.Module):
    def forward(self, x):
        return x.double() if bool(x.sum() > 0) else x + 1


@pytest.mark.parametrize(
    ("model", "arguments", "message"),
    [
        (Growing(), (torch.ones(3), torch.tensor(2)), "a list is changed"),
        (OtherTypes(), (torch.ones(3),), r"float64\[3\] and float32\[3\]"),
    ],
    ids=["list", "dtypes"],
)
def test_what_a_script_may_not_do(model, arguments, message):
    with pytest.raises(CaptureError, match=message):
        pipeline.compile(model, arguments, capture="script")


class Rows(nn.Module):
    def forward(self, x, n, m):
        out = torch.zeros(3, 2, 4)
        for i in range(int(n)):
            out[i] = x + i
            out[:, int(m)] = x.sum() * 2
        return out


def test_numbers_that_index_are_checked():
    x = torch.randn(4)
    executable = pipeline.compile(Rows(), (x, torch.tensor(2), torch.tensor(1)), capture="script")
    for n, m in ((2, 1), (0, 0), (3, -2)):
        numbers = torch.tensor(n), torch.tensor(m)
        assert not differences(executable(x, *numbers), Rows()(x, *numbers))
    for n, m in ((4, 0), (3, 2), (2, -3)):
        with pytest.raises(PipelineError, match="index out of range"):
            executable(x, torch.tensor(n), torch.tensor(m))


class Mirrored(nn.Module):
    def forward(self, x, y):
        return (x - y).flip(0).clamp(-8, 8)


def test_single_elements_of_what_a_kernel_computes():
    """The flip takes elements of the difference that lie in other tiles of it."""
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    assert not differences(pipeline.compile(Mirrored(), (x, y))(x, y), Mirrored()(x, y))
