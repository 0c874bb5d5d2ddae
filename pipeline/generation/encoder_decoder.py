"""Models with an encoder: a source is read once, and a text follows that begins with a token of the settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.errors import ArgumentError, OptionError
from pipeline.generation.language_model import LanguageModel
from pipeline.generation.prompt import Prompt, filled_up, integers
from pipeline.generation.rows import TextRows
from pipeline.generation.settings import Settings
from pipeline.runtime.executable import Executable

#: Sizes that torch.export takes for symbolic start here, so a shorter source gets padding.
_SHORTEST = 2


@dataclass(frozen=True)
class SourcePrompt(Prompt):
    """The token that texts begin with, as a prompt, and what they are about.

    Attributes:
        source: int64[batch, length].
        mask: 0 where that is padding, int64[batch, length].
    """

    source: np.ndarray
    mask: np.ndarray

    @staticmethod
    def of_source(input_ids: Any, attention_mask: Any, batch: int, copies: int, first: int) -> SourcePrompt:
        """What a caller gives, each row `copies` times.

        Raises:
            ArgumentError: it has no rows or too many, or a row has no tokens.
        """
        ids = integers("input_ids", input_ids)
        mask = np.ones_like(ids) if attention_mask is None else integers("attention_mask", attention_mask)
        if not 1 <= len(ids) * copies <= batch:
            counted = f"{len(ids)} rows" if copies == 1 else f"{len(ids)} rows of {copies} texts each"
            raise ArgumentError(f"input_ids: has {counted}, the model was compiled for batch={batch} at most")
        if mask.shape != ids.shape:
            raise ArgumentError(
                f"attention_mask: expected the shape of input_ids, {list(ids.shape)}, got {list(mask.shape)}"
            )
        if not (mask != 0).any(1).all():
            raise ArgumentError("input_ids: a row has no tokens, or padding alone; give it the token that ends texts")
        missing = ((0, 0), (0, max(_SHORTEST - ids.shape[1], 0)))
        source, mask = (np.pad(filled_up(np.repeat(array, copies, 0), batch), missing) for array in (ids, mask))
        given = np.full((len(ids) * copies, 1), first, np.int64)
        return SourcePrompt(given, filled_up(given, batch), np.zeros(batch, np.int64), source, mask)


class EncoderDecoderModel(LanguageModel):
    """Generates from a source; `pipeline.generation.compile` and `load` make it.

    `generate` gives int64[rows, 1 + tokens], the text that follows with the token that it begins with, as transformers
    does. `attention_mask` may be padding anywhere in a row.

    Attributes:
        prefill: takes a source, and the first token into the cache: (int64[batch, length], int64[batch, length],
            int64[batch, 1]) -> f32[batch, vocabulary].
        decode: takes one token more: (int64[batch, 1], int64[filled], the numbers from 0, int64[batch, length]) ->
            likewise.
        max_source_length: how many tokens of a source it has room for.
    """

    kind = "models with an encoder"

    def __init__(self, prefill: Executable, decode: Executable, settings: Settings, tokenizer: bytes | None = None):
        super().__init__(prefill, decode, None, settings, tokenizer)
        self.max_source_length = int(prefill.buffers["source.keys_0"].shape[-1])

    def first_new(self, input_ids: Any) -> int:
        """See `LanguageModel.first_new`: one, whatever the source."""
        return 1

    def rows(self) -> TextRows:
        """Not there: rows would have to have sources of their own."""
        raise OptionError("rows: models with an encoder take their sources at once: use generate or stream")

    def _prompt(self, input_ids: Any, attention_mask: Any, settings: Settings) -> SourcePrompt:
        self._check(None, settings)
        first = settings.decoder_start_token_id
        if first is None:
            raise OptionError("decoder_start_token_id: the model's generation_config has none; give it")
        prompt = SourcePrompt.of_source(input_ids, attention_mask, self.batch, settings.copies, first)
        if prompt.source.shape[1] > self.max_source_length:
            raise ArgumentError(
                f"input_ids: {prompt.source.shape[1]} tokens are more than the model was compiled for, "
                f"max_source_length={self.max_source_length}"
            )
        return prompt

    def _logits(self, prompt: Prompt, tokens: np.ndarray, number: int, settings: Settings) -> Any:
        assert isinstance(prompt, SourcePrompt)
        if not number:
            return self.prefill(prompt.source, prompt.mask, prompt.ids)
        return self.decode(filled_up(tokens, self.batch)[:, None], self._slots[: 1 + number], prompt.mask)
