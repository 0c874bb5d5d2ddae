"""What goes in and comes out of a model keeps its structure."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, namedtuple

import pytest
import torch
from api_models import Calls, check
from transformers.modeling_outputs import BaseModelOutput

import pipeline
from pipeline import PipelineError

Pair = namedtuple("Pair", ["first", "second"])


def test_dict_argument_and_result():
    result = check(lambda batch: {"sum": batch["a"] + batch["b"]}, {"a": torch.ones(3), "b": torch.ones(3)})
    assert type(result) is dict


def test_ordered_dict_result():
    assert type(check(lambda x: OrderedDict(b=x + 1, a=x * 2), torch.ones(3))) is OrderedDict


def test_nested_tuples_and_lists():
    result = check(
        lambda pair, rest: [(pair[0] + rest[0], pair[1]), [rest[1] * 2]], (torch.ones(2),) * 2, [torch.ones(2)] * 2
    )
    assert type(result) is list and type(result[0]) is tuple and type(result[1]) is list


def test_named_tuple():
    result = check(lambda pair: Pair(pair.second - 1, pair.first), Pair(torch.ones(2), torch.zeros(3)))
    assert type(result) is Pair


def test_torch_return_type():
    result = check(lambda x: torch.max(x, 1), torch.randn(3, 4))
    assert type(result) is torch.return_types.max


def test_model_output():
    model = Calls(lambda x: BaseModelOutput(last_hidden_state=x * 2))
    result = pipeline.compile(model, (torch.ones(2),))(torch.ones(2))
    assert type(result) is BaseModelOutput
    assert result.hidden_states is None
    torch.testing.assert_close(result["last_hidden_state"], torch.full((2,), 2.0))


def test_an_unregistered_class_is_refused():
    @dataclasses.dataclass
    class Unknown:
        x: torch.Tensor

    with pytest.raises(PipelineError):
        pipeline.compile(Calls(lambda a: a.x + 1), (Unknown(torch.ones(2)),))


def test_none_leaves():
    result = check(lambda x, nothing, more: (x + 1, nothing, {"none": None}), torch.ones(2), None, [None])
    assert result[1] is None


def test_constant_arguments_and_results():
    model = Calls(lambda x, n, flag, name, f: (x * n if flag else x, n, name, f, True))
    args = (torch.ones(2), 3, True, "cat", 0.5)
    result = pipeline.compile(model, args)(*args)
    torch.testing.assert_close(result[0], torch.full((2,), 3.0))
    assert result[1:] == (3, "cat", 0.5, True)


def test_no_results_and_no_arguments():
    assert pipeline.compile(Calls(lambda x: None), (torch.ones(2),))(torch.ones(2)) is None
    torch.testing.assert_close(pipeline.compile(Calls(lambda: torch.arange(3)), ())(), torch.arange(3))


def test_a_tensor_returned_twice_is_one_tensor():
    def twice(x):
        y = x + 1
        return y, y

    first, second = check(twice, torch.ones(3))
    assert first is second


def test_an_argument_returned_as_it_is_is_the_same_tensor():
    x = torch.ones(3)
    y, same = pipeline.compile(Calls(lambda x: (x + 1, x)), (x,))(x)
    assert same is x
    assert y.data_ptr() != x.data_ptr()


def test_one_tensor_as_two_arguments():
    x = torch.randn(3)
    check(lambda a, b: a * 2 + b, x, x)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_integer_results_keep_their_dtype(dtype):
    assert check(lambda x: (x | x, x.clone()), torch.tensor([0, 1, 100]).to(dtype))[0].dtype is dtype


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_float_results_keep_their_dtype(dtype):
    assert check(lambda x: x * 2 + 1, torch.randn(5).to(dtype)).dtype is dtype
