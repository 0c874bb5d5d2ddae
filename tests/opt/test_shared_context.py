"""Small programs of a thread share a context of MLIR's; what is compiled in it is what a context of its own gives."""

from __future__ import annotations

import multiprocessing
import threading

import pytest
import torch
from function_model import Function

import pipeline
from pipeline.mlir import context, context_for, ir, shared_context
from pipeline.mlir.shared_context import pass_manager, single_threaded

EXP = """
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %b = math.exp %a : tensor<4xf32>
  return %b : tensor<4xf32>
}
"""


def compiled(function, *args):
    return pipeline.compile(Function(function), args, cache=False)


def test_small_programs_share_one_where_that_is_allowed():
    with shared_context():
        first = context_for(10)
        assert context_for(20) is first
        assert context_for(10_000) is not first, "a large program"
        with shared_context(allowed=False):
            assert context_for(10) is not first
    assert context_for(10) is not first, "outside of a block"


def test_one_that_has_had_much_in_it_is_replaced():
    with shared_context():
        first = context_for(400)
        found = [context_for(400) for _ in range(100)]
    assert found[0] is first and found[-1] is not first


def test_one_in_which_something_failed_is_not_used_again():
    with pytest.raises(ValueError), shared_context():
        first = context_for(10)
        raise ValueError
    with shared_context():
        assert context_for(10) is not first


def test_pass_managers_are_made_once_in_it():
    text = "builtin.module(canonicalize)"
    with shared_context():
        shared = context_for(10)
        assert pass_manager(text, shared, False) is pass_manager(text, shared, False)
        assert pass_manager(text, shared, False) is not pass_manager(text, shared, True)
    other = context()
    assert pass_manager(text, other, False) is not pass_manager(text, other, False)


def test_threads_have_their_own():
    found: list[ir.Context] = []

    def run() -> None:
        with shared_context():
            found.append(context_for(10))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    with shared_context():
        assert context_for(10) is not found[0]


def test_threads_that_compile_at_the_same_time():
    x, results = torch.arange(6.0), {}

    def run(number: int) -> None:
        for _ in range(3):
            results[number] = compiled(lambda x: x * number + 1, x)(x)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(3):
        torch.testing.assert_close(results[number], x * number + 1)


def test_the_code_is_that_of_a_context_of_its_own():
    x = torch.randn(3, 5)

    def programs():
        yield lambda x: x.softmax(-1) + torch.tensor([1.0, 2, 3, 4, 5])  # with a constant
        yield lambda x: (x @ x.t()).relu().sum(0)
        yield lambda x: x.flip(0)[1:].cumsum(1)

    alone = [pipeline.capture(Function(program), (x,)).compile(cache=False) for program in programs()]
    for _ in range(2):
        for program, expected in zip(programs(), alone, strict=True):
            found = compiled(program, x)
            for stage in ("torch", "linalg", "fused", "kernels", "llvm"):
                assert found.ir(stage) == expected.ir(stage)
            torch.testing.assert_close(found(x), expected(x))


def test_after_an_error():
    with pytest.raises(pipeline.CompileError):
        pipeline.compile(EXP.replace("tensor<4xf32> {", "tensor<5xf32> {"), cache=False)
    with pytest.raises(pipeline.UnsupportedOpError):
        compiled(torch.linalg.eigvals, torch.eye(3))
    x = torch.randn(4)
    torch.testing.assert_close(torch.from_numpy(pipeline.compile(EXP, cache=False)(x.numpy())), x.exp())


def _in_child(queue) -> None:
    x = torch.arange(5.0)
    queue.put(compiled(lambda x: x.exp() * 2, x)(x).tolist())


def test_a_forked_child_compiles_in_it():
    x = torch.arange(5.0)
    compiled(lambda x: x.exp() * 2, x)
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=_in_child, args=(queue,))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    torch.testing.assert_close(torch.tensor(queue.get()), x.exp() * 2)


def test_it_has_no_threads_to_take_away():
    with shared_context():
        shared = context_for(10)
        with single_threaded(shared), single_threaded(context()):
            pass
        assert context_for(10) is shared
