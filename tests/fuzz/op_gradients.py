"""Gradients of torch's own samples of its operators: entry by entry in float64 and in float32, as torch.compile trains.

Forward keeps what backward needs of it, so that this compares both, and what they say to each other. Seeds go through
the differentiable entries in strides, then again with the other dtype, and after both with the next sample.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
import torch.utils._pytree as pytree
from drawing import Draw
from op_samples import UNDEFINED, OpSample, entries
from outcomes import RIGHT, Outcome

import pipeline
from pipeline.errors import CheckError

#: How far gradients may differ, against the largest element: a sum of products in another order.
_TOLERANCES = {torch.float64: 1e-7, torch.float32: 2e-3}

#: Gradients that are not defined by the arguments: of vectors that are so but for a factor, of equal elements.
_UNDEFINED = (*UNDEFINED, "linalg.eig", "linalg.svd", "svd", "pca_lowrank")


#: A prime, so that neighbours by the alphabet are tried far apart.
_STRIDE = 101


@functools.cache
def _differentiable() -> tuple[int, ...]:
    """The numbers of the entries that have gradients."""
    return tuple(
        number
        for number, op in enumerate(entries())
        if op.supports_autograd and torch.float64 in op.supported_backward_dtypes("cpu")
    )


def gradient_sample(draw: Draw) -> OpSample:
    """The sample that the seed says."""
    around, place = divmod(draw.seed, len(_differentiable()))
    number, dtype = divmod(around, len(_TOLERANCES))
    entry = _differentiable()[place * _STRIDE % len(_differentiable())]
    return OpSample(entry, entries()[entry].full_name, list(_TOLERANCES)[dtype], number)


def trained(samples: Sequence[OpSample]) -> list[Outcome]:
    """Compared with eager's results and gradients."""
    return [_outcome(sample) for sample in samples]


def _outcome(sample: OpSample) -> Outcome:
    found = sample.model_and_arguments(requires_grad=True)
    if found is None or not any(one.requires_grad for one in found[1]):
        return "refused", "there is no such sample"
    model, arguments = found
    try:
        expected = _results_and_gradients(model, arguments)
    except Exception as error:  # eager's samples may be of errors, and of results that carry no gradients
        return "refused", f"by eager: {error}"
    torch._dynamo.reset()
    try:
        compiled = torch.compile(model, backend="pipeline", options={"cache": False, "fallback": "torch"})
        got = _results_and_gradients(compiled, arguments)
    except CheckError as error:
        return "wrong", f"{sample}: {error}"
    except pipeline.PipelineError as error:
        return "refused", str(error)
    except Exception as error:  # what is not a PipelineError is the finding
        return "defect", f"{sample}: {type(error).__name__}: {error}"
    if any(word in sample.name for word in _UNDEFINED):
        return RIGHT
    problems = [text for pair in zip(got, expected, strict=True) if (text := _difference(*pair, sample.dtype))]
    return ("wrong", f"{sample}: {'; '.join(problems)}") if problems else RIGHT


def _results_and_gradients(model: Any, arguments: Sequence[torch.Tensor]) -> list[torch.Tensor | None]:
    """The results, and the gradients of some sum of them by all arguments that carry some."""
    copies = [one.detach().clone().requires_grad_(one.requires_grad) for one in arguments]
    leaves = [leaf for leaf in pytree.tree_leaves(model(*copies)) if isinstance(leaf, torch.Tensor)]
    results = [leaf for leaf in leaves if leaf.requires_grad]
    wanted = [one for one in copies if one.requires_grad]
    seeds = [torch.arange(result.numel()).cos().to(result.dtype).view(result.shape) for result in results]
    gradients = torch.autograd.grad(results, wanted, seeds, allow_unused=True)
    return [*(leaf.detach() for leaf in leaves), *gradients]


def _difference(got: torch.Tensor | None, expected: torch.Tensor | None, dtype: torch.dtype) -> str | None:
    if got is None or expected is None:  # an argument that nothing depends on has no gradient, or zeros
        rest = expected if got is None else got
        return None if rest is None or not rest.any() else "a gradient that only one of both has"
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return f"{got.dtype} {list(got.shape)}, expected {expected.dtype} {list(expected.shape)}"
    mine, theirs = _exact(got), _exact(expected)
    largest = theirs[theirs.isfinite()].abs().max().item() if theirs.isfinite().any() else 0.0
    tolerance = _TOLERANCES[dtype]
    if torch.allclose(mine, theirs, rtol=tolerance, atol=tolerance * max(largest, 1.0), equal_nan=True):
        return None
    return f"off by {(mine - theirs).abs().max().item():.3g} of {largest:.3g}"


def _exact(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.to_dense() if tensor.layout != torch.strided else tensor
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)
