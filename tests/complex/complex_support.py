"""What the tests of complex numbers share: compiling functions, and comparing with eager in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from function_model import Function
from torch.utils import _pytree as pytree

import pipeline
from pipeline.frontend.capture.capture import capture
from pipeline.frontend.complex_numbers import complex_as_pairs
from pipeline.frontend.numbers.checks import drop_proved_assertions

WIDE = {torch.float32: torch.float64, torch.complex64: torch.complex128}


def compiled(function: Callable[..., Any], *args: Any, **options: Any) -> pipeline.Executable:
    """The function, compiled on these arguments."""
    return pipeline.compile(Function(function), args, cache=False, **options)


def wide(arguments: Any) -> Any:
    """The arguments in double precision."""
    return pytree.tree_map_only(torch.Tensor, lambda one: one.to(WIDE.get(one.dtype, one.dtype)), arguments)


def assert_as_good(got: Any, function: Callable[..., Any], args: tuple[Any, ...], limit: float = 4e-7) -> None:
    """Results have eager's types, and errors against double precision of a few times eager's, or of rounding."""
    eager, exact = (pytree.tree_leaves(function(*given)) for given in (args, wide(args)))
    for number, (ours, theirs, truth) in enumerate(zip(pytree.tree_leaves(got), eager, exact, strict=True)):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), number
        if not (theirs.is_floating_point() or theirs.is_complex()):
            assert torch.equal(ours, theirs), number
            continue
        if not ours.numel():
            continue
        scale = truth.abs().max().item()
        allowed = 4 * (theirs - truth).abs().max().item() + limit * scale + 1e-30
        assert (ours - truth).abs().max().item() <= allowed, number


def rewritten(function: Callable[..., Any], *args: Any) -> list[Any]:
    """What the graph that reaches MLIR computes, by torch itself: cheaper than to compile it."""
    exported = capture(Function(function), args)
    drop_proved_assertions(exported.graph)
    complex_as_pairs(exported.graph)
    for view in exported.graph.find_nodes(op="call_function", target=torch.ops.aten.view.default):
        view.target = torch.ops.aten.reshape.default  # in MLIR there are no strides that a view could not have
    given = [torch.view_as_real(one.resolve_conj()) if one.is_complex() else one for one in args]
    constants = [exported.constants[spec.target] for spec in exported.graph_signature.input_specs if spec.target]
    module = torch.fx.GraphModule(torch.nn.Module(), exported.graph)
    with torch.no_grad():
        results = torch.fx.Interpreter(module).run(*constants, *given)
        eager = pytree.tree_leaves(function(*args))
    return [
        torch.view_as_complex(one.contiguous()) if like.is_complex() else one
        for one, like in zip(results, eager, strict=True)
    ]
