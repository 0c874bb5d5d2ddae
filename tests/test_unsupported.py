"""Ops that cannot be lowered: one error lists all of them, each with its line of the source."""

import inspect

import pytest
import torch

import pipeline


class Unsupported(torch.nn.Module):
    def forward(self, x):
        spectrum = torch.special.airy_ai(x)
        values = torch.linalg.eigvalsh(x @ x.mT)
        y = torch.relu(x) + 1
        exponential = torch.linalg.matrix_exp(y)
        return spectrum, values, torch.special.bessel_j0(exponential)


def line_of(text):
    lines, first = inspect.getsourcelines(Unsupported)
    return first + next(number for number, line in enumerate(lines) if text in line)


def test_one_error_lists_all_ops_with_their_lines():
    stages = []
    with pytest.raises(pipeline.UnsupportedOpError) as caught:
        pipeline.compile(Unsupported(), (torch.randn(4, 4),), observer=lambda stage, text: stages.append(stage))
    message = str(caught.value)
    for text in ("airy_ai", "eigvalsh", "matrix_exp", "bessel_j0"):
        assert f"{__file__}:{line_of(text)}" in message
    assert "relu" not in message
    assert "linalg" not in stages


def test_the_error_has_the_ops_as_data():
    with pytest.raises(pipeline.UnsupportedOpError) as caught:
        pipeline.compile(Unsupported(), (torch.randn(4, 4),))
    names = [name for name, _, _ in caught.value.ops]
    assert any("bessel_j0" in name for name in names)
    assert all(source and source.startswith(__file__) for _, source, _ in caught.value.ops)


def test_a_custom_op_is_listed():
    @torch.library.custom_op("pipeline_tests::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    twice.register_fake(torch.empty_like)

    class Custom(torch.nn.Module):
        def forward(self, x):
            return torch.ops.pipeline_tests.twice(x)

    with pytest.raises(pipeline.UnsupportedOpError, match="pipeline_tests.twice at .*test_unsupported.py"):
        pipeline.compile(Custom(), (torch.randn(3),))


def test_max_pooling_of_int64_is_refused():
    class Pool(torch.nn.Module):
        def forward(self, x):
            return torch.nn.functional.max_pool2d(x, 2)

    with pytest.raises(pipeline.UnsupportedOpError, match=r"max_pool2d.* at .*test_unsupported.py:\d+: .*int64"):
        pipeline.compile(Pool(), (torch.ones(1, 1, 4, 4, dtype=torch.int64),))
