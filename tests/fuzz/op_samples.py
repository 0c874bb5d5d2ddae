"""torch's own samples of its operators: the entries of op_db by number, in float32, int64 and bool.

Seed n is entry n modulo their number; each time around takes the next dtype, and after all of them the next sample.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.utils._pytree as pytree
from drawing import Draw
from numerics import differences
from outcomes import RIGHT, Outcome
from torch.export import Dim

import pipeline
from pipeline.errors import CheckError

_DTYPES = (torch.float32, torch.int64, torch.bool)

#: Results that are not defined by the arguments: what is drawn, and memory that nobody has written to.
UNDEFINED = ("empty", "new_empty", "rand", "bernoulli", "multinomial", "normal", "dropout", "uniform", "exponential")
UNDEFINED += ("cauchy", "geometric", "log_normal", "rrelu", "randint", "fractional_max_pool", "resize_", "svd_lowrank")

#: Which of equal elements comes first is not defined, and integers and bools have equal ones.
_ORDERS = ("sort", "topk", "kthvalue")

_MOST_ELEMENTS = 100_000


@functools.cache
def entries() -> tuple[Any, ...]:
    """All entries, as torch sorts them."""
    from torch.testing._internal.common_methods_invocations import op_db  # takes seconds

    return tuple(op_db)


@dataclass(frozen=True)
class OpSample:
    """A sample of an entry; `name` says which that is."""

    entry: int
    name: str
    dtype: torch.dtype
    number: int

    def model_and_arguments(self, requires_grad: bool = False) -> tuple[torch.nn.Module, list[torch.Tensor]] | None:
        """The op as a model of the sample's tensors; None if there is no such sample, or eager does not take it.

        With `requires_grad` the tensors carry gradients that torch says can.
        """
        op = entries()[self.entry]
        if self.dtype not in op.supported_dtypes("cpu"):
            return None
        torch.manual_seed(self.number)
        samples = op.sample_inputs("cpu", self.dtype, requires_grad=requires_grad)
        sample = next((one for number, one in enumerate(samples) if number == self.number), None)
        if sample is None:
            return None
        leaves, spec = pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
        model = _Applied(op.op, leaves, spec)
        arguments = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        return (model, arguments) if sum(one.numel() for one in arguments) < _MOST_ELEMENTS else None


class _Applied(torch.nn.Module):
    """An op of which the tensors are arguments, and all else is constant."""

    def __init__(self, op: Any, leaves: Sequence[Any], spec: pytree.TreeSpec):
        super().__init__()
        self._op, self._spec = op, spec
        self._constants = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        self._places = [number for number, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def forward(self, *tensors: torch.Tensor) -> Any:
        leaves = list(self._constants)
        for place, tensor in zip(self._places, tensors, strict=True):
            leaves[place] = tensor
        args, kwargs = pytree.tree_unflatten(leaves, self._spec)
        return self._op(*args, **kwargs)


def op_sample(draw: Draw) -> OpSample:
    """The sample that the seed says."""
    around, entry = divmod(draw.seed, len(entries()))
    number, dtype = divmod(around, len(_DTYPES))
    return OpSample(entry, entries()[entry].full_name, _DTYPES[dtype], number)


def as_is_and_symbolic(samples: Sequence[OpSample]) -> list[Outcome]:
    """With the sizes of the sample, and with every size from 2 on symbolic; ops that are not lowered run in torch."""
    with torch.no_grad():
        return [_outcome(sample) for sample in samples]


def _outcome(sample: OpSample) -> Outcome:
    found = sample.model_and_arguments()
    if found is None or not found[1]:
        return "refused", "there is no such sample"
    model, arguments = found
    try:
        expected = model(*_copies(arguments))
    except Exception as error:  # eager's samples may be of errors
        return "refused", f"by eager: {error}"
    sizes = [{dim: Dim.AUTO for dim, size in enumerate(one.shape) if size > 1} for one in arguments]
    for shapes in (None, {"tensors": tuple(sizes)}):
        outcome = _tried(sample, model, arguments, shapes, expected)
        if outcome != RIGHT:
            return outcome
    return RIGHT


def _tried(sample: OpSample, model: torch.nn.Module, arguments: list[torch.Tensor], shapes: Any, expected: Any) -> Any:
    kind = "static" if shapes is None else "symbolic"
    try:
        executable = pipeline.compile(model, tuple(_copies(arguments)), dynamic_shapes=shapes, fallback="torch")
        got = executable(*_copies(arguments))
    except CheckError as error:
        return "wrong", f"{sample}: {error}"
    except pipeline.PipelineError as error:
        return "refused", f"{kind}: {error}"
    except Exception as error:  # what is not a PipelineError is the finding
        return "defect", f"{kind}: {sample}: {type(error).__name__}: {error}"
    undefined = UNDEFINED if sample.dtype.is_floating_point else (*UNDEFINED, *_ORDERS)
    if any(word in sample.name for word in undefined):
        return RIGHT
    problems = [f"result{path}: {text}" for path, text in differences(_dense(got), _dense(expected))]
    return ("wrong", f"{kind}: {sample}: {'; '.join(problems)}") if problems else RIGHT


def _dense(results: Any) -> Any:
    return pytree.tree_map_only(torch.Tensor, lambda result: result.to_dense() if result.is_sparse else result, results)


def _copies(arguments: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [one.detach().clone() for one in arguments]
