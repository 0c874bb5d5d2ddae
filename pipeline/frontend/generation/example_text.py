"""Whether a decoder makes of its entries what it makes of a text without a cache, for an example."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
from pipeline.frontend.generation.image_positions import ImagePositions
from pipeline.frontend.generation.inputs import ExampleInputs
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
        example: where that comes from.
        logits: what the model makes of them without the entries, after the last two tokens.
    """

    model: nn.Module
    shapes: Sequence[LayerShape]
    ids: torch.Tensor
    padding: torch.Tensor
    inputs: Mapping[str, torch.Tensor]
    example: ExampleInputs | None
    logits: torch.Tensor

    @classmethod
    def of(cls, model: nn.Module, shapes: Sequence[LayerShape], example: ExampleInputs | None) -> ExampleText:
        """Runs the model."""
        vocabulary = model.get_input_embeddings().num_embeddings
        given = torch.arange(4)[None] % vocabulary if example is None else example.ids
        text = [token for token in given[0].tolist() if example is None or token not in example.placeholders]
        # One row goes on where the other has padding in front.
        ids = torch.cat([F.pad(given, (0, 2), value=text[-1] if text else 0), F.pad(given, (2, 0))])
        mask = torch.ones_like(ids)
        mask[1, :2] = 0
        padding = (mask == 0).sum(1)
        if example is not None:
            inputs = example.of_texts(ids, padding.tolist())
            try:
                ids, logits = _generated(model, ids, mask, inputs, example)
            except Exception as error:  # whatever a model does with what it does not expect
                names = ", ".join(example.inputs)
                raise CaptureError(
                    f"{type(model).__name__}: does not generate beside {names}: {one_line(error)}"
                ) from error
            return cls(model, shapes, ids, padding, inputs, example, logits)
        positions = (mask.cumsum(1) - 1).clamp(min=0)
        results = called(model, input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=False)
        return cls(model, shapes, ids, padding, {}, None, results.logits[:, -2:].float())

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


def _generated(
    model: nn.Module,
    ids: torch.Tensor,
    mask: torch.Tensor,
    inputs: Mapping[str, torch.Tensor],
    example: ExampleInputs,
) -> tuple[torch.Tensor, torch.Tensor]:
    """What `generate` makes of prompts beside inputs: these with a token more, and the logits before and after that."""
    sizes = {name: torch.tensor(numbers) for name, numbers in example.numbers(len(ids)).items()}
    settings = {"max_new_tokens": 2, "min_new_tokens": 2, "do_sample": False, "num_beams": 1, "use_cache": True}
    with _deltas_kept(model):
        found = model.generate(
            input_ids=ids,
            attention_mask=mask,
            **inputs,
            **sizes,
            **settings,
            pad_token_id=0,
            output_logits=True,
            return_dict_in_generate=True,
        )
    return found.sequences[:, :-1], torch.stack(found.logits, 1).float()


@contextmanager
def _deltas_kept(model: nn.Module) -> Iterator[None]:
    """Has a model keep those that it has, whatever it runs meanwhile."""
    kept = [(part, part.rope_deltas) for part in model.modules() if hasattr(part, "rope_deltas")]
    try:
        yield
    finally:
        for part, deltas in kept:
            part.rope_deltas = deltas


def _step_by_step(text: ExampleText, cache: CacheBuffers) -> torch.Tensor:
    """The logits after the last two tokens: of a prompt, and of a step behind it."""
    model, ids, padding, example = text.model, text.ids, text.padding, text.example
    positions = None if example is None else ImagePositions.of(model, example)
    sizes = None if example is None else example.numbers(len(ids))
    prompt = PromptEntry(model, cache, positions, sizes)(ids[:, :-1], padding, dict(text.inputs) or None)
    step = StepEntry(model, cache, positions)(ids[:, -1:], padding, torch.arange(ids.shape[1]))
    return torch.stack([prompt, step], 1)


def _at_once(text: ExampleText, cache: CacheBuffers) -> torch.Tensor:
    """The logits after the last two tokens, which come at once behind a prompt."""
    model, ids, padding = text.model, text.ids, text.padding
    PromptEntry(model, cache)(ids[:, :-2], padding)
    return ExtendEntry(model, cache)(ids[:, -2:], padding, torch.arange(ids.shape[1] - 2), torch.arange(2))
