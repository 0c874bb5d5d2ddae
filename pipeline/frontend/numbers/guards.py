"""What torch.export took for granted about sizes as it ran the model's Python: the runtime checks it at each call."""

from __future__ import annotations

from typing import Any

from torch import fx
from torch._dynamo.source import TensorProperty
from torch._guards import detect_fake_mode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from pipeline.errors import PipelineError
from pipeline.frontend.numbers.askers import place_in_model
from pipeline.frontend.numbers.assumed_sizes import assumed
from pipeline.remarks import note
from pipeline.runtime.call.symbolic_sizes import evaluate
from pipeline.runtime.interface.signature import Guard


def guards_of(graph: fx.Graph) -> tuple[Guard, ...]:
    """The conditions on sizes under which the graph is what the model does: `if x.shape[0] % 2`, `int(s * 0.7)`."""
    environment = _environment(graph)
    if environment is None:
        return ()
    found: dict[str, Guard] = {}
    for condition, place in _asked(environment):
        text = str(condition)
        if condition.free_symbols and _is_of_sizes(environment, condition) and _is_known(text, condition):
            found.setdefault(text, Guard(text, place))
    return tuple(found.values())


def makes_numbers_of_sizes(graph: fx.Graph) -> bool:
    """Whether symbolic sizes became numbers, those of the example, since the model's Python asked for them."""
    environment = _environment(graph)
    if environment is None:
        return False
    asked = [guard for guard in environment.guards if place_in_model(guard.sloc)]
    return any(not environment.replace(guard.expr).free_symbols for guard in asked)


def _environment(graph: fx.Graph) -> ShapeEnv | None:
    fake = detect_fake_mode([node.meta.get("val") for node in graph.nodes])
    return None if fake is None else fake.shape_env


def _asked(environment: ShapeEnv) -> list[tuple[Any, str]]:
    """(condition, `file:line`) of what the model asked about sizes."""
    guards = [(environment.replace(guard.expr), place_in_model(guard.sloc)) for guard in environment.guards]
    return [*assumed(environment), *((condition, place) for condition, place in guards if place)]


def _is_of_sizes(environment: ShapeEnv, condition: Any) -> bool:
    """Whether it is about sizes alone; strides, which `reshape` asks about, decide over copies and not over values."""
    sources = (source for symbol in condition.free_symbols for source in environment.var_to_sources.get(symbol, ()))
    return all(getattr(source, "prop", TensorProperty.SIZE) is TensorProperty.SIZE for source in sources)


def _is_known(text: str, condition: Any) -> bool:
    """Whether the runtime can compute the condition."""
    try:
        evaluate(text, {str(symbol): 6 for symbol in condition.free_symbols})
    except ArithmeticError:
        return True
    except PipelineError:
        note(
            "capture", "missed", "builtin.module", f"calls are not checked for {text}, which the model was captured for"
        )
        return False
    return True
