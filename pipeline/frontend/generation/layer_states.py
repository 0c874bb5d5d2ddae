"""What layers of convolutions and recurrences keep from token to token: states, whose size no text changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch
from torch.nn import functional

from pipeline.frontend.generation.equal_layers import LayerNumber


@dataclass(frozen=True)
class StateShape:
    """A state that a layer has for each row.

    Attributes:
        kind: `conv`, the last tokens that a convolution looks at, [.., tokens]; `recurrent`, any tensor.
        place: its number among the layer's states of its kind.
        shape: of one row.
    """

    kind: Literal["conv", "recurrent"]
    place: int
    shape: tuple[int, ...]
    dtype: torch.dtype

    def name(self, layer: int) -> str:
        """The name of its buffer."""
        return f"{self.kind}_{layer}_{self.place}"


def state_shapes(layer: Any) -> tuple[StateShape, ...]:
    """What a layer of transformers' cache keeps beside keys and values, of a text of one row."""
    kinds: tuple[tuple[Literal["conv", "recurrent"], str], ...] = (
        ("conv", "conv_states"),
        ("recurrent", "recurrent_states"),
    )
    return tuple(
        StateShape(kind, place, tuple(state.shape[1:]), state.dtype)
        for kind, attribute in kinds
        for place, state in getattr(layer, attribute, {}).items()
        if state is not None
    )


class States(Protocol):
    """Where the states of layers are."""

    def state(self, kind: str, number: int, place: int) -> torch.Tensor:
        """That of a layer, [batch, ..]."""


class StatesView:
    """The states as a model sees them, by the methods that transformers' caches have for them.

    Those of a text that begins here are written, and not read.
    """

    def __init__(self, states: States, is_first: bool):
        self._states, self.is_first = states, is_first

    def has_previous_state(self, layer_idx: int | LayerNumber | None = None, state_idx: int | None = None) -> bool:
        """Whether a text goes on."""
        return not self.is_first

    def is_recording_past(self, layer_idx: int | LayerNumber) -> bool:
        """Whether states are kept from which one could go back: no."""
        return False

    def get_conv_state(self, layer_idx: int | LayerNumber, state_idx: int = 0) -> torch.Tensor | None:
        """The last tokens of a text that goes on, which a model may write to."""
        return None if self.is_first else self._state("conv", layer_idx, state_idx)

    def get_recurrent_state(self, layer_idx: int | LayerNumber, state_idx: int = 0) -> torch.Tensor | None:
        """The state of a text that goes on, which a model may write to."""
        return None if self.is_first else self._state("recurrent", layer_idx, state_idx)

    def update_conv_state(
        self, conv_states: torch.Tensor, layer_idx: int | LayerNumber, state_idx: int = 0, **_: Any
    ) -> torch.Tensor:
        """Keeps the last of [batch, .., tokens]; returns these behind those that were kept."""
        kept = self._state("conv", layer_idx, state_idx)
        count = kept.shape[-1]
        before = functional.pad(conv_states, (count, 0)) if self.is_first else torch.cat([kept, conv_states], -1)
        kept.copy_(before[..., -count:])
        return conv_states if self.is_first else before

    def update_recurrent_state(
        self, recurrent_states: torch.Tensor, layer_idx: int | LayerNumber, state_idx: int = 0, **_: Any
    ) -> torch.Tensor:
        """Keeps a state."""
        return self._state("recurrent", layer_idx, state_idx).copy_(recurrent_states)

    def _state(self, kind: str, layer: int | LayerNumber, place: int) -> torch.Tensor:
        return self._states.state(kind, layer.value if isinstance(layer, LayerNumber) else layer, place)
