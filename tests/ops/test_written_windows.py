"""Windows of `unfold` in memory that is written to: through them, and beside them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import pipeline
from pipeline.errors import CaptureError

#: Of x: [6]. Those in front have all elements, and the others leave some out.
WINDOWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "all": lambda x: x.unfold(0, 2, 2),
    "gaps": lambda x: x.unfold(0, 2, 4),
    "rest": lambda x: x.unfold(dimension=0, size=4, step=4),
    "columns": lambda x: x.view(2, 3).unfold(1, 1, 2),
    "rows of transposed": lambda x: x.view(2, 3).t().unfold(0, 1, 2),
    "of windows": lambda x: x.unfold(0, 3, 3).unfold(1, 1, 2),
}


def write_all(x, windows):
    y = windows(x)
    y.mul_(2)
    return y * 1


def write_one(x, windows):
    y = windows(x)
    y[0] = 7
    y.select(-1, 0).add_(1)
    return y * 1


def write_beside(x, windows):
    y = windows(x)
    x[1:5].add_(1)
    return y * 1


def write_to_computed(x, windows):
    z = x * 2
    y = windows(z)
    y.add_(1)
    return y * 1, z


WRITES = [write_all, write_one, write_beside, write_to_computed]


def exported(function, x):
    return pipeline.compile(function, (x,))


def compiled(function, _x):
    return torch.compile(function, backend="pipeline", dynamic=False)


@pytest.mark.parametrize("way", [exported, compiled])
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("name", WINDOWS)
def test_writes(name, write, way):
    torch._dynamo.reset()
    x = torch.arange(6.0)
    function = way(lambda x: write(x, WINDOWS[name]), x.clone())
    given, right = x.clone(), x.clone()
    torch.testing.assert_close(function(given), write(right, WINDOWS[name]))
    torch.testing.assert_close(given, right)


@pytest.mark.parametrize("write", WRITES)
def test_nothing_is_lost_where_sizes_are_symbolic(write):
    """They are right, or refused: how many elements lie in no window is not known."""
    length = torch.export.Dim("length", min=5, max=64)
    x = torch.arange(6.0)

    def function(x):
        return write(x, lambda x: x.as_strided((2, 2), (2, 1)))

    executable = pipeline.compile(function, (x.clone(),), dynamic_shapes=({0: length},))
    given, right = x.clone(), x.clone()
    torch.testing.assert_close(executable(given), function(right))
    torch.testing.assert_close(given, right)
    with pytest.raises(CaptureError, match=r"test_written_windows.py:\d+: this looks at windows of memory"):
        pipeline.compile(lambda x: write(x, WINDOWS["all"]), (x.clone(),), dynamic_shapes=({0: length},))


@pytest.mark.parametrize("way", [exported, compiled])
def test_windows_that_overlap_are_refused(way):
    torch._dynamo.reset()
    with pytest.raises(Exception, match="internal overlap"):
        way(lambda x: write_all(x, lambda x: x.unfold(0, 3, 1)), torch.arange(6.0))(torch.arange(6.0))


def test_windows_that_nothing_is_written_to_stay():
    """A tensor that was written to before the call is none that the model writes to."""
    x = torch.arange(9.0)
    x += 1
    function = torch.compile(lambda x: x.unfold(0, 2, 4) * 1, backend="pipeline", dynamic=True)
    torch.testing.assert_close(function(x), x.unfold(0, 2, 4))
