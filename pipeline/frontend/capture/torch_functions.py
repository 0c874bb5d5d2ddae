"""Functions of torch that do something else while a model is traced by running it.

Some branch on the values of tensors, for a hint or for an error that they raise; some make numbers of sizes. Some
change the state of the process, which a call of the compiled program would not do.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional
from torch.nn.modules import transformer

from pipeline.errors import CaptureError
from pipeline.frontend.capture.branching_functions import corrcoef, cov, gaussian_nll_loss
from pipeline.frontend.capture.replaced import replaced
from pipeline.frontend.capture.symbolic_functions import combinations, kron, one_hot, pooled_size, take_along_dim

_TORCH = Path(torch.__file__).parent

_SEED = "seed torch's generator before the call"


def pools_of_all_sizes() -> contextlib.AbstractContextManager[None]:
    """Has torch find out the sizes of pools as `pooled_size` does, for a `with` block; one thread at a time."""
    return replaced(torch._meta_registrations, "pooling_output_shape_pad_lr", pooled_size)


@contextlib.contextmanager
def as_traced() -> Iterator[None]:
    """Puts the replacements below in place for a `with` block; one thread at a time."""
    with contextlib.ExitStack() as stack:
        for owner, name, replacement in _REPLACEMENTS:
            stack.enter_context(replaced(owner, name, replacement))
        stack.enter_context(pools_of_all_sizes())
        yield


def _causal_hint(mask: Any, is_causal: bool | None = None, size: int | None = None) -> bool:
    """What the caller of nn.TransformerEncoder or nn.TransformerDecoder says, without comparing the mask's values.

    It lets attention compute the causal mask rather than read the one that it is given: with the same result.
    """
    return bool(is_causal)


def _asserted(valid: torch.Tensor) -> bool:
    """torch.distributions' question whether to raise, answered by a check of the call."""
    torch._assert_async(valid.all(), "a parameter or a value that its distribution does not take")
    return True


def _checked(error_type: type[Exception], condition: torch.Tensor, message: Callable[[], str] | None = None) -> None:
    """torch's check of all elements of a tensor, as a check of the call."""
    torch._assert_async(condition.all(), "a check of the model does not hold" if message is None else str(message()))


def _max_pool1d(*args: Any, **kwargs: Any) -> torch.Tensor:
    """By the op that has indices, too: without gradients torch takes one that makes numbers of symbolic sizes."""
    return torch.max_pool1d_with_indices(*args, **kwargs)[0]


def _refused(function: Callable[..., Any], instead: str) -> Callable[..., Any]:
    """An error where a model calls the function; torch, too, does as it traces regions, and restores the state."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        if Path(sys._getframe(1).f_code.co_filename).is_relative_to(_TORCH):
            return function(*args, **kwargs)
        name = f"torch.{function.__name__}"
        raise CaptureError(f"{name} in a model runs while it is captured, not in each call; {instead}")

    return refuse


_REPLACEMENTS: tuple[tuple[Any, str, Callable[..., Any]], ...] = (
    (transformer, "_detect_is_causal_mask", _causal_hint),
    (torch, "_is_all_true", _asserted),
    (torch, "_check_tensor_all_with", _checked),
    (torch, "max_pool1d", _max_pool1d),
    (functional, "gaussian_nll_loss", gaussian_nll_loss),
    *((owner, "cov", cov) for owner in (torch, torch.Tensor)),
    *((owner, "corrcoef", corrcoef) for owner in (torch, torch.Tensor)),
    (torch, "combinations", combinations),
    (functional, "one_hot", one_hot),
    *((owner, "kron", kron) for owner in (torch, torch.Tensor)),
    *((owner, "take_along_dim", take_along_dim) for owner in (torch, torch.Tensor)),
    (torch, "manual_seed", _refused(torch.manual_seed, _SEED)),
    (torch, "seed", _refused(torch.seed, _SEED)),
    (torch, "set_rng_state", _refused(torch.set_rng_state, _SEED)),
    (torch, "set_default_dtype", _refused(torch.set_default_dtype, "give the dtype where tensors are made")),
)
