"""The garbage collector rests during a compilation, and is as it was after it."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch

import pipeline
from pipeline import gc_pause


def test_no_collection_runs_during_a_compilation() -> None:
    enabled: list[bool] = []
    pipeline.compile(
        torch.nn.ReLU(), (torch.zeros(3),), cache=False, observer=lambda *_: enabled.append(gc.isenabled())
    )
    assert enabled and not any(enabled)
    assert gc.isenabled()


def test_the_collector_is_back_after_an_error() -> None:
    with pytest.raises(pipeline.PipelineError):
        pipeline.compile("this is no MLIR\n", cache=False)
    assert gc.isenabled()


def test_it_is_back_when_the_last_of_several_compilations_ends() -> None:
    with gc_pause.left():
        with gc_pause.left():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def _graph_modules(kind: type = torch.nn.Module) -> int:
    """How many graphs of torch.fx are alive: each is of a class of its own."""
    gc.collect()
    classes = [kind, *kind.__subclasses__()]
    for one in classes[1:]:
        classes += one.__subclasses__()
    return sum("GraphModuleImpl" in one.__qualname__ for one in classes)


def test_no_graphs_are_left() -> None:
    """Of each one that is, every later trace of torch.fx would take longer."""

    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(x.softmax(-1)) + x.var(1, keepdim=True)

    before = _graph_modules()
    for rows in range(3, 6):
        pipeline.compile(model, (torch.zeros(rows, 7),), cache=False)
    assert _graph_modules() <= before + 1


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with gc_pause.left():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.Adadelta])
def test_an_optimizers_state_goes_with_it(kind: type[torch.optim.Optimizer]) -> None:
    """At once: what was compiled for its step keeps it no longer, though nobody looks for garbage."""
    model = torch.nn.Linear(4, 4, bias=False)
    optimizer = kind(model.parameters())
    step = torch.compile(lambda: optimizer.step(), backend="pipeline")
    gc.disable()
    try:
        model(torch.ones(4)).sum().backward()
        step()
        states = [weakref.ref(value) for value in optimizer.state[model.weight].values() if value.dim()]
        assert states and all(reference() is not None for reference in states)
        optimizer = None
        assert not any(reference() is not None for reference in states)
    finally:
        gc.enable()
