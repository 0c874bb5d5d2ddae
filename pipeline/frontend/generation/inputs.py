"""What models read besides tokens, as examples of it are given: images, the features of speech."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from pipeline.errors import OptionError


def example_inputs(given: Any) -> dict[str, torch.Tensor]:
    """An example of one row, by name: a dictionary of tensors, or what one of transformers' processors gives.

    Raises:
        OptionError: it is none.
    """
    if not isinstance(given, Mapping) or not given or not all(map(_is_named_tensor, given.items())):
        raise OptionError(
            f"inputs: expected tensors by name, as a processor of transformers gives them, got {type(given).__name__}"
        )
    found = {name: tensor.detach() for name, tensor in sorted(given.items())}
    tokens = found.get("input_ids")
    if tokens is not None and (tokens.ndim != 2 or len(tokens) != 1):
        raise OptionError(f"inputs: expected an example of one row, got input_ids of {list(tokens.shape)}")
    return found


def _is_named_tensor(item: tuple[Any, Any]) -> bool:
    name, value = item
    return isinstance(name, str) and isinstance(value, torch.Tensor) and value.ndim > 0


def of_rows(inputs: Mapping[str, torch.Tensor], rows: int) -> dict[str, torch.Tensor]:
    """The same for `rows` rows: what belongs to a row stands behind what belongs to those in front of it."""
    return {name: torch.cat([tensor] * rows) for name, tensor in inputs.items()}
