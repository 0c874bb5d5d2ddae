"""`pipeline.compile(model, args, training=True)`: a model whose outputs carry gradients, as an object of ours.

It is what torch.compile gives, compiled before the first call: the call with the example arguments ends where code
would run, so that nothing is drawn, and no statistics are written.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch._dynamo import config as dynamo_config
from torch._dynamo.exc import BackendCompilerFailed, TorchDynamoException
from torch.export import Dim
from torch.export.dynamic_shapes import _tree_map_with_path

from pipeline.compiler import target_for
from pipeline.errors import CaptureError, OptionError, PipelineError
from pipeline.frontend.capture.capture import checked_arguments
from pipeline.frontend.capture.capture_errors import cause, explain
from pipeline.frontend.dynamo.backend import pipeline_backend
from pipeline.frontend.dynamo.registry import executables
from pipeline.options import Options
from pipeline.remarks import Remark
from pipeline.runtime.executable import Executable
from pipeline.runtime.interface.code import Kernel

#: What no training needs: what drivers ask for, and what is captured otherwise.
_NOT_FOR_TRAINING = ("observer", "assembly", "linked", "capture")


class TrainingExecutable:
    """A model compiled for training: called as the model is, its results carry gradients.

    Forward is compiled; backward is when gradients are first asked for. Arguments of other shapes or dtypes, and a
    model that has been switched between training and evaluation, are compiled for when they come, as torch.compile
    does; the model must be one graph.
    """

    def __init__(self, compiled: Callable[..., Any]):
        self._compiled = compiled

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the model: its results, as the model gives them."""
        with _as_own_errors():
            return self._compiled(*args, **kwargs)

    @property
    def executables(self) -> list[Executable]:
        """Forward, then backward once there is one; again for each further form of arguments."""
        return executables(self._compiled)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels of all executables, in the order of first use."""
        return tuple(kernel for executable in self.executables for kernel in executable.kernels)

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """What the compiler decided about all executables, and why."""
        return tuple(remark for executable in self.executables for remark in executable.remarks)

    def save(self, path: str | Path) -> NoReturn:
        """Raises `PipelineError`: gradients need torch, which a file does without."""
        raise PipelineError(
            "what is compiled with training=True cannot be saved: torch computes with its gradients; save the model's "
            "state_dict() to go on training, or compile the trained model without training=True and save that"
        )

    def __reduce__(self) -> NoReturn:
        self.save("")

    def __repr__(self) -> str:
        return f"TrainingExecutable({len(self.executables)} executables, {len(self.kernels)} kernels)"


def compile_for_training(
    model: Any,
    args: tuple[Any, ...] | None,
    kwargs: Mapping[str, Any] | None,
    dynamic_shapes: Any,
    options: Mapping[str, Any],
) -> TrainingExecutable:
    """See `pipeline.compile`; the model is an nn.Module or a function, in the mode in which it is to be compiled."""
    for name in _NOT_FOR_TRAINING:
        if name in options:
            raise OptionError(f"{name}: training=True does without; leave one of both out")
    target_for(Options.create(options))
    if isinstance(model, (torch.jit.ScriptModule, torch.export.ExportedProgram)) or not callable(model):
        raise PipelineError(f"training=True takes an nn.Module or a function, not a {type(model).__name__}")
    given, keywords = checked_arguments(args, kwargs)
    given = given or ()
    backend = _Backend(options)
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    with torch.enable_grad(), dynamo_config.patch(allow_rnn=True), _as_own_errors(), contextlib.suppress(_Compiled):
        if dynamic_shapes is not None:
            given, keywords = _marked(model, given, keywords, dynamic_shapes)
        compiled(*given, **keywords)
    backend.runs = True
    return TrainingExecutable(compiled)


class _Compiled(Exception):
    """Ends a call that is there for its compilation."""


class _Backend:
    """The backend, whose code can be called once `runs` is set."""

    def __init__(self, options: Mapping[str, Any]):
        self._options = dict(options)
        self.runs = False

    def __call__(self, graph: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        call = pipeline_backend(graph, inputs, options=self._options)

        def run(*given: Any) -> Any:
            if not self.runs:
                raise _Compiled
            return call(*given)

        return run


@contextlib.contextmanager
def _as_own_errors() -> Iterator[None]:
    """What dynamo makes of an error of ours is that error; what it says of a model is a `CaptureError`."""
    try:
        yield
    except BackendCompilerFailed as error:
        if isinstance(error.inner_exception, PipelineError):
            raise error.inner_exception from None
        raise
    except TorchDynamoException as error:
        raise CaptureError(f"torch could not capture the model as one graph: {explain(error)}") from cause(error)


def _marked(
    model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The example arguments, whose tensors are others in the same memory that dynamo knows to have dynamic sizes."""
    bound = inspect.signature(model.forward if isinstance(model, torch.nn.Module) else model).bind(*args, **kwargs)
    if isinstance(dynamic_shapes, (tuple, list)):
        dynamic_shapes = dict(zip(bound.arguments, dynamic_shapes, strict=False))
    bound.arguments.update(
        _tree_map_with_path(
            lambda _, leaf, shape: _marked_tensor(leaf, shape),
            dict(bound.arguments),
            dynamic_shapes,
            tree_name="args",
        )
    )
    return bound.args, bound.kwargs


def _marked_tensor(leaf: Any, shape: Any) -> Any:
    if not isinstance(leaf, torch.Tensor) or not shape:
        return leaf
    alias = leaf.detach().requires_grad_(leaf.requires_grad)
    for dim, size in shape.items() if isinstance(shape, Mapping) else enumerate(shape):
        if size is None or isinstance(size, int) or size == Dim.STATIC:
            continue
        if size == Dim.AUTO:
            torch._dynamo.maybe_mark_dynamic(alias, dim)
        else:
            torch._dynamo.mark_dynamic(alias, dim, min=getattr(size, "min", None), max=getattr(size, "max", None))
    return alias
