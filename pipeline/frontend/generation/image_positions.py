"""Positions of images' parts in three directions: those of a prompt, and by how much what follows is behind its slot.

Models as Qwen-VL count the tokens of an image by time, height and width, and go on behind the largest of these. How
many there are of each is the example's, so what they add to a position is known.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import nn

from pipeline.frontend.generation.inputs import ExampleInputs


class ImagePositions(nn.Module):
    """Buffers that say where the tokens of a row's images are: `count` of them.

    Attributes:
        offsets: int64[3, count], what is added to the position that the first of an image has.
        advances: int64[count], how many positions further the next token is.
        shift: int64[1], how many positions the tokens behind the prompt in the cache are behind their slots.
    """

    offsets: torch.Tensor
    advances: torch.Tensor
    shift: torch.Tensor

    def __init__(self, is_image: torch.Tensor, positions: torch.Tensor, shift: int, tokens: tuple[int, ...]):
        """Takes bool[length], int64[3, length], and the tokens in whose places images stand."""
        super().__init__()
        self.tokens = tokens
        ends = is_image & ~torch.cat([is_image[1:], is_image.new_zeros(1)])
        behind = torch.cat([positions.amax(0)[1:], positions.new_full([1], len(is_image) + shift)])
        begins = is_image & ~torch.cat([is_image.new_zeros(1), is_image[:-1]])
        first = torch.cat([positions.new_zeros(1), positions.amax(0)[:-1] + 1])[begins]
        base = first[begins.cumsum(0)[is_image] - 1]
        self.register_buffer("offsets", positions[:, is_image] - base, persistent=False)
        advances = torch.where(ends[is_image], behind[is_image] - base, 0)
        self.register_buffer("advances", advances, persistent=False)
        self.register_buffer("shift", torch.zeros(1, dtype=torch.int64), persistent=False)

    @classmethod
    def of(cls, model: nn.Module, example: ExampleInputs) -> ImagePositions | None:
        """What a model says of an example's; None for one whose positions are the numbers of tokens."""
        owner: Any = next((part for part in model.modules() if hasattr(part, "get_rope_index")), None)
        if owner is None or not example.placeholders:
            return None
        taken = inspect.signature(owner.get_rope_index).parameters
        given = {name: tensor for name, tensor in example.inputs.items() if name in taken}
        positions, shift = owner.get_rope_index(example.ids, attention_mask=torch.ones_like(example.ids), **given)
        tokens = tuple(example.placeholders)
        return cls(_is_one_of(example.ids[0], tokens), positions[:, 0], int(shift), tokens)

    def of_prompt(self, input_ids: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        """The positions of prompts, int64[3, batch, length], which set `shift`, too."""
        is_image = _is_one_of(input_ids, self.tokens)
        place = (is_image.cumsum(1) - 1).clamp(min=0, max=len(self.advances) - 1)
        is_text = torch.arange(input_ids.shape[1])[None] >= padding[:, None]
        steps = torch.where(is_image, self.advances[place], is_text.to(torch.int64))
        positions = (steps.cumsum(1) - steps) + torch.where(is_image, self.offsets[:, place], 0)
        self.shift.copy_(self.advances.sum() - len(self.advances))
        return positions


def _is_one_of(ids: torch.Tensor, tokens: tuple[int, ...]) -> torch.Tensor:
    found = ids == tokens[0]
    for token in tokens[1:]:
        found = found | (ids == token)
    return found
