"""Ctrl-C while a model is compiled."""

from __future__ import annotations

import signal
import threading

import pytest
import torch

import pipeline
from pipeline.mlir import ir
from pipeline.passes.control_flow import hoist_common_ops


def interrupt_in_a_callback(self, op):
    def visit(inner):
        signal.raise_signal(signal.SIGINT)
        return ir.WalkResult.ADVANCE

    op.walk(visit)


def interrupt_that_somebody_swallows(self, op):
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        raise ValueError("no idea what this was") from None


@pytest.mark.parametrize("run", [interrupt_in_a_callback, interrupt_that_somebody_swallows])
def test_it_ends_the_compilation(run, monkeypatch):
    monkeypatch.setattr(hoist_common_ops.HoistCommonOps, "run", run)
    with pytest.raises(KeyboardInterrupt):
        pipeline.compile(torch.nn.ReLU(), (torch.ones(3),))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_next_compilation_is_not_ended():
    assert pipeline.compile(torch.nn.ReLU(), (torch.ones(3),))(torch.ones(3)).sum() == 3


def test_a_handler_of_somebody_elses_stays(monkeypatch):
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(True))
    try:
        observer = lambda *_: signal.raise_signal(signal.SIGINT)  # noqa: E731
        pipeline.compile(torch.nn.ReLU(), (torch.ones(3),), observer=observer)
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen


def test_other_threads_may_compile():
    results = []
    thread = threading.Thread(target=lambda: results.append(pipeline.compile(torch.nn.ReLU(), (torch.ones(3),))))
    thread.start()
    thread.join()
    assert len(results) == 1
