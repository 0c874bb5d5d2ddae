"""Calls whose tensors the code reads itself: the same results, nothing taken that is not expected, nothing leaked."""

from __future__ import annotations

import gc
import sys
import threading

import pytest
import torch
from function_model import Function
from torch import nn

import pipeline
from pipeline.runtime.call import fast_path, tensor_words
from pipeline.runtime.call.tensor_words import TensorWords

X = torch.arange(24.0).view(4, 6)


def compiled(function, *args, **options):
    """An executable whose code reads these arguments."""
    exe = pipeline.compile(Function(function), args, **options)
    exe(*args)
    assert exe._fast._direct.function(*args) is not NotImplemented
    return exe


@pytest.fixture(scope="module")
def twice():
    return compiled(lambda x: x * 2, X)


def variable():
    return X.clone().requires_grad_()


def in_inference_mode():
    with torch.inference_mode():
        return torch.arange(24.0).view(4, 6)


TAKEN = {
    "from the middle of a storage": lambda: torch.arange(60.0).view(10, 6)[3:7],
    "parameter": lambda: nn.Parameter(X),
    "variable": variable,
    "computed with gradients": lambda: variable() + 1,
    "in inference mode": in_inference_mode,
    "of NumPy": lambda: torch.from_numpy(X.numpy().copy()),
    "transposed and copied": lambda: X.t().contiguous().t().contiguous(),
    "written to": lambda: X.clone().add_(1),
}


@pytest.mark.parametrize("form", TAKEN)
def test_what_is_taken(twice, form):
    tensor = TAKEN[form]()
    with torch.no_grad():
        assert torch.equal(twice._fast._direct.function(tensor), tensor * 2)
        assert torch.equal(twice(tensor), tensor * 2)


def freed():
    tensor = X.clone()
    tensor.untyped_storage().resize_(0)
    return tensor


class Subclass(torch.Tensor):
    pass


NOT_TAKEN = {
    "another dtype": lambda: X.double(),
    "another shape": lambda: X.view(6, 4),
    "one more dim": lambda: X[None],
    "transposed": lambda: X.t().contiguous().t(),
    "every second row": lambda: torch.zeros(8, 6)[::2],
    "expanded": lambda: torch.zeros(1, 6).expand(4, 6),
    "negated view": lambda: torch._neg_view(X),
    "meta": lambda: X.to("meta"),
    "sparse": lambda: X.to_sparse(),
    "functional": lambda: torch._to_functional_tensor(X),
    "subclass": lambda: X.as_subclass(Subclass),
    "freed": freed,
    "number": lambda: 1.0,
    "nothing": lambda: None,
    "array": lambda: X.numpy(),
}


@pytest.mark.parametrize("form", NOT_TAKEN)
def test_what_is_not_taken(twice, form):
    """It goes the way of Python, which takes it, or says what is wrong."""
    assert twice._fast._direct.function(NOT_TAKEN[form]()) is NotImplemented


STRIDED = {
    "transposed": lambda: X.t().contiguous().t(),
    "every second row": lambda: torch.arange(48.0).view(8, 6)[::2],
    "expanded": lambda: torch.arange(6.0).expand(4, 6),
    "variable": lambda: variable().t().contiguous().t(),
    "part of rows": lambda: torch.arange(40.0).view(4, 10)[:, 3:9],
}


@pytest.mark.parametrize("form", STRIDED)
def test_copies_of_what_is_not_row_major_go_the_short_way(twice, form, monkeypatch):
    monkeypatch.setattr(type(twice), "_call", None)
    tensor = STRIDED[form]()
    result = twice(tensor)
    assert torch.equal(result, tensor * 2)
    assert not result.requires_grad


def test_nothing_is_copied_that_is_written_to():
    x = torch.arange(24.0).view(6, 4).t()
    exe = pipeline.compile(Function(lambda x: x.add_(1) * 2), (X.clone(),))
    expected = x + 1
    assert torch.equal(exe(x), expected * 2)
    assert torch.equal(x, expected)


@pytest.mark.parametrize("args", [(), (X, X)])
def test_another_number_of_arguments_is_not_taken(twice, args):
    assert twice._fast._direct.function(*args) is NotImplemented


def test_a_tensor_of_a_transform_is_not_taken(twice):
    """Its structure is a wrapper's."""
    seen = []

    def look(tensor):
        seen.append(twice._fast._direct.function(tensor))
        return tensor

    torch.func.vmap(look)(torch.zeros(3, 4, 6))
    assert seen == [NotImplemented]


@pytest.mark.parametrize("shape", [(), (1,), (2, 1, 3, 1, 2), (1, 2, 1, 2, 1, 2), (70_000,)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int8, torch.bool, torch.bfloat16], ids=str)
def test_shapes_and_dtypes(shape, dtype):
    """Sizes of many dims lie apart from the structure: such tensors go the way of Python."""
    x = (torch.randn(shape) * 9).to(dtype)
    exe = pipeline.compile(Function(lambda x: (x, x == x)[1]), (x,))
    assert torch.equal(exe(x), x == x)
    assert (exe._fast._direct.function(x) is NotImplemented) == (len(shape) > 5)


def test_results_in_order_and_temporaries():
    """Each has its slot; what is between kernels lies in the workspace of the thread."""
    torch.manual_seed(0)
    x, y = torch.randn(40, 300), torch.randn(300, 50)

    def function(x, y):
        product = (x @ y).softmax(0)
        return product.sum(1, keepdim=True), product @ product.t(), (x.long(), {"max": y.amax(0)})

    exe = compiled(function, x, y)
    assert exe._workspace.is_needed
    for _ in range(3):
        x, y = torch.randn(40, 300), torch.randn(300, 50)
        torch.testing.assert_close(exe(x, y), function(x, y))
        assert torch.equal(exe(x, y)[1], exe._call((x, y), {}, None)[1])


def test_nothing_is_leaked(twice):
    """References are counted as they should be, of results, arguments, and what stands for a refusal."""
    direct, result = twice._fast._direct.function, twice(X)
    assert sys.getrefcount(result) == 2
    before = sys.getrefcount(X), sys.getrefcount(NotImplemented), sys.getrefcount(torch.Tensor)
    for _ in range(1000):
        direct(X)
        direct(X.t())
    after = sys.getrefcount(X), sys.getrefcount(NotImplemented), sys.getrefcount(torch.Tensor)
    assert all(abs(now - then) < 10 for now, then in zip(after, before, strict=True))


def test_a_failed_check_goes_the_long_way():
    place = torch.tensor([1, 3])
    exe = compiled(lambda x, place: x[place] * 2, X, place)
    assert exe._fast._direct.function(X, torch.tensor([1, 4])) is NotImplemented
    with pytest.raises(pipeline.PipelineError, match="out of range"):
        exe(X, torch.tensor([1, 4]))
    assert torch.equal(exe(X, place), X[place] * 2)


def test_weights_that_change_are_seen():
    net = nn.Linear(6, 3).requires_grad_(False)
    exe = pipeline.compile(net, (X,))
    for change in (lambda: None, lambda: net.weight.mul_(2), lambda: net.bias.data.add_(1), net.share_memory):
        change()
        exe.refresh()
        torch.testing.assert_close(exe(X), net(X))
        assert exe._fast._direct.weights() is exe._bound
    net.weight.add_(1)
    assert exe._fast._direct.function(X) is NotImplemented
    torch.testing.assert_close(exe(X), net(X))


def test_what_a_result_cannot_be_made_of_is_raised(twice, monkeypatch):
    def fails():
        raise MemoryError("no memory for it")

    ((_, slot),) = twice._fast._results
    monkeypatch.setattr(twice._fast, "_results", [(fails, slot)])
    monkeypatch.setattr(twice._fast, "_direct", None)
    with pytest.raises(MemoryError, match="no memory for it"):
        twice(X)


def test_other_threads_run_meanwhile():
    """The code holds no lock of Python's while it computes."""
    x = torch.randn(700, 700)
    exe = compiled(lambda x: x @ x @ x, x, num_threads=1)
    expected, results = exe(x), [None] * 4

    def call(number):
        for _ in range(20):
            results[number] = exe(x)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(len(results))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(result, expected) for result in results)


def test_an_artifact_has_it_too(twice, tmp_path):
    twice.save(tmp_path / "twice.pipeline")
    loaded = pipeline.load(tmp_path / "twice.pipeline")
    assert torch.equal(torch.as_tensor(loaded(X)), X * 2)
    assert loaded._fast._direct.function(X) is not NotImplemented


def test_without_the_words_calls_go_the_way_of_python(monkeypatch):
    monkeypatch.setattr(fast_path, "tensor_words", lambda: None)
    exe = pipeline.compile(Function(lambda x: x * 2), (X,))
    assert torch.equal(exe(X), X * 2)
    assert exe._fast._direct is None


@pytest.mark.parametrize("usual", [torch.float64, "meta"], ids=str)
def test_the_words_are_those_of_any_usual_tensors(usual):
    """Whatever dtype and device a tensor has where none is given."""
    set_usual = torch.set_default_device if usual == "meta" else torch.set_default_dtype
    before = None if usual == "meta" else torch.get_default_dtype()  # a device by name would stay a mode of torch's
    try:
        set_usual(usual)
        assert tensor_words.calibrated_words.__wrapped__() == tensor_words.tensor_words()
    finally:
        set_usual(before)
    assert not torch.overrides._get_current_function_mode_stack()


def test_weights_that_are_gone_are_not_kept():
    """What was prepared of them before is as large as they are."""
    net = nn.Linear(6, 3).requires_grad_(False)
    exe = pipeline.compile(net, (X,))
    exe(X)
    before = exe._fast._direct.weights
    net.weight.mul_(2)
    exe.refresh()
    gc.collect()
    assert before() is None


def test_words_that_do_not_tell_tensors_apart_are_none(monkeypatch):
    """As of a torch whose structures are others."""
    assert isinstance(tensor_words.tensor_words(), TensorWords)
    monkeypatch.setattr(tensor_words, "_WORDS", 15)  # without the number of elements, the dtype and the keys
    assert tensor_words.calibrated_words.__wrapped__() is None
