"""Whether a decoder makes of its entries what it makes of a text without a cache, for an example."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from pipeline.errors import CaptureError
from pipeline.frontend.generation.cached_attention import (
    CacheBuffers,
    LayerShape,
    attending_to_buffers,
    attends_itself,
)
from pipeline.frontend.generation.entries import ExtendEntry, PromptEntry, StepEntry, called
from pipeline.frontend.generation.inputs import ExampleInputs, is_by_token
from pipeline.frontend.recurrent import recurrences_as_loops
from pipeline.plugins import one_line


@dataclass
class ExampleText:
    """Two rows of tokens, of which one has padding.

    Attributes:
        model, shapes: what is to take them, and what its layers cache.
        ids: int64[2, length].
        padding: int64[2].
        inputs: what the model reads besides.
        logits: what the model makes of them without a cache, after the last two tokens.
    """

    model: nn.Module
    shapes: Sequence[LayerShape]
    ids: torch.Tensor
    padding: torch.Tensor
    inputs: Mapping[str, torch.Tensor]
    logits: torch.Tensor

    @classmethod
    def of(cls, model: nn.Module, shapes: Sequence[LayerShape], example: ExampleInputs | None) -> ExampleText:
        """Runs the model."""
        vocabulary = model.get_input_embeddings().num_embeddings
        given = torch.arange(4)[None] % vocabulary if example is None else example.ids
        # One row goes on where the other has padding in front.
        ids = torch.cat([F.pad(given, (0, 2), value=int(given[0, -1])), F.pad(given, (2, 0))])
        mask = torch.ones_like(ids)
        mask[1, :2] = 0
        if example is None:
            inputs, positions = {}, {"position_ids": (mask.cumsum(1) - 1).clamp(min=0)}
        else:
            inputs, positions = example.of_texts(ids, (0, 2)), {}
        results = called(model, input_ids=ids, attention_mask=mask, use_cache=False, **positions, **inputs)
        return cls(model, shapes, ids, (mask == 0).sum(1), inputs, results.logits[:, -2:].float())

    def check_steps(self) -> None:
        """Raises `CaptureError` if a model makes something else of what it is given here than of what is usual."""
        why = ""
        try:
            agree = self._agrees(_step_by_step)
        except Exception as error:  # whatever a model does with what it does not expect
            agree, why = False, f" ({one_line(error)})"
        if not agree:
            raise CaptureError(
                f"{type(self.model).__name__}: {self._what_is_unknown()}{why}, so that it cannot be given this cache; "
                "compile it with pipeline.compile"
            )

    @property
    def extends(self) -> bool:
        """Whether a model goes on from its states with several tokens at once: transformers' Mamba begins anew."""
        return self._agrees(_at_once)

    def _what_is_unknown(self) -> str:
        if self.inputs:
            return f"makes something else of tokens beside {', '.join(self.inputs)} than it does without a cache"
        if any(shape.states for shape in self.shapes):
            return "keeps states of a kind that generation has not yet"
        if attends_itself(self.model):
            return (
                "its attention is its own, none of transformers' attention functions, and takes no masks of [batch, 1, "
                "tokens, slots]"
            )
        return "makes something else of masks and positions than models do whose attention is known"

    def _agrees(self, run: Callable[[ExampleText, CacheBuffers], torch.Tensor]) -> bool:
        """Whether entries that are run on the text and an empty cache give these logits."""
        cache = CacheBuffers(self.shapes, len(self.ids), self.ids.shape[1])
        with attending_to_buffers(self.model), recurrences_as_loops(self.model):
            difference = (run(self, cache) - self.logits).abs().max()
        return bool(difference <= torch.finfo(self.model.dtype).eps ** 0.5 * self.logits.abs().max())


def _step_by_step(text: ExampleText, cache: CacheBuffers) -> torch.Tensor:
    """The logits after the last two tokens: of a prompt, and of a step behind it."""
    model, ids, padding = text.model, text.ids, text.padding
    inputs = {name: tensor[:, :-1] if is_by_token(tensor, ids) else tensor for name, tensor in text.inputs.items()}
    prompt = PromptEntry(model, cache)(ids[:, :-1], padding, inputs or None)
    return torch.stack([prompt, StepEntry(model, cache)(ids[:, -1:], padding, torch.arange(ids.shape[1]))], 1)


def _at_once(text: ExampleText, cache: CacheBuffers) -> torch.Tensor:
    """The logits after the last two tokens, which come at once behind a prompt."""
    model, ids, padding = text.model, text.ids, text.padding
    PromptEntry(model, cache)(ids[:, :-2], padding)
    return ExtendEntry(model, cache)(ids[:, -2:], padding, torch.arange(ids.shape[1] - 2), torch.arange(2))
