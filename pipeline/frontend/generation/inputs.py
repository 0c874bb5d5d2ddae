"""What models read besides tokens, as examples of it are given: images, the features of speech."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from pipeline.errors import OptionError

#: How configs call the tokens in whose places stand what is made of images and sounds.
_PLACEHOLDER = re.compile("(image|video|audio|speech|media).*_token_(id|index)")


def example_inputs(given: Any) -> dict[str, torch.Tensor]:
    """An example of one row, by name: a dictionary of tensors, or what one of transformers' processors gives.

    Raises:
        OptionError: it is none.
    """
    if not isinstance(given, Mapping) or not given or not all(map(_is_named_tensor, given.items())):
        raise OptionError(
            "inputs: expected tensors by name, none of them empty, as a processor of transformers gives them, got "
            f"{type(given).__name__}"
        )
    return {name: tensor.detach() for name, tensor in sorted(given.items())}


def _is_named_tensor(item: tuple[Any, Any]) -> bool:
    name, value = item
    return isinstance(name, str) and isinstance(value, torch.Tensor) and value.ndim > 0 and len(value) > 0


def of_rows(inputs: Mapping[str, torch.Tensor], rows: int) -> dict[str, torch.Tensor]:
    """The same for `rows` rows: what belongs to a row stands behind what belongs to those in front of it."""
    return {name: torch.cat([tensor] * rows) for name, tensor in inputs.items()}


def is_by_token(tensor: torch.Tensor, ids: torch.Tensor) -> bool:
    """Whether a tensor says something of each token."""
    return tensor.shape == ids.shape


@dataclass(frozen=True)
class ExampleInputs:
    """A prompt of one row, and what a decoder reads besides.

    Attributes:
        ids: int64[1, length].
        inputs: by name; of the shape of the prompt where they say something of each token.
        placeholders: how often there are tokens in the prompt in whose places the others stand.
        sizes: the names of those that say sizes, such as `image_grid_thw`: whole numbers of neither tokens nor masks.
    """

    ids: torch.Tensor
    inputs: Mapping[str, torch.Tensor]
    placeholders: Mapping[int, int]
    sizes: Sequence[str]

    @classmethod
    def of(cls, given: Any, config: Any) -> ExampleInputs:
        """What a caller gives.

        Raises:
            OptionError: it is no example, not of one row, or of a row with padding.
        """
        inputs = example_inputs(given)
        ids, mask = inputs.pop("input_ids", None), inputs.pop("attention_mask", None)
        if ids is None or not inputs:
            raise OptionError(
                "inputs: expected the input_ids of a prompt, and what the model reads besides, such as pixel_values"
            )
        if ids.ndim != 2 or len(ids) != 1 or ids.shape[1] < 2 or not (mask is None or bool((mask != 0).all())):
            raise OptionError(f"inputs: expected a prompt of one row without padding, got {list(ids.shape)}")
        tokens = {value for name, value in config.to_dict().items() if _PLACEHOLDER.fullmatch(name)}
        counts = {token: int((ids == token).sum()) for token in tokens if isinstance(token, int)}
        placeholders = {token: count for token, count in sorted(counts.items()) if count}
        sizes = [
            name
            for name, tensor in inputs.items()
            if tensor.dtype in (torch.int32, torch.int64) and not name.endswith("mask") and not is_by_token(tensor, ids)
        ]
        return cls(ids, inputs, placeholders, sizes)

    def by_token(self) -> Sequence[str]:
        """The names of those that say something of each token."""
        return [name for name, tensor in self.inputs.items() if is_by_token(tensor, self.ids)]

    def numbers(self, rows: int) -> dict[str, list[Any]]:
        """What says sizes, for `rows` rows, as lists of numbers."""
        return {name: of_rows(self.inputs, rows)[name].tolist() for name in self.sizes}

    def of_texts(self, ids: torch.Tensor, padding: Sequence[int]) -> dict[str, torch.Tensor]:
        """These but for sizes, for rows of tokens that have so many more in front."""
        found = {name: x for name, x in of_rows(self.inputs, len(ids)).items() if name not in self.sizes}
        more = ids.shape[1] - self.ids.shape[1]
        for name in self.by_token():
            found[name] = torch.cat([F.pad(self.inputs[name], (front, more - front)) for front in padding])
        return found
