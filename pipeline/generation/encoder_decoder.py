"""Models with an encoder: a source is read once, and a text follows that begins with a token of the settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.errors import ArgumentError, OptionError
from pipeline.generation.language_model import LanguageModel
from pipeline.generation.prompt import SHORTEST, Prompt, filled_up, integers
from pipeline.generation.rows import TextRows
from pipeline.generation.settings import Settings
from pipeline.runtime.call.array_libraries import library_of
from pipeline.runtime.call.array_library import ArrayLibrary
from pipeline.runtime.executable import Executable


@dataclass(frozen=True)
class SourcePrompt(Prompt):
    """The tokens that texts begin with, as a prompt, and what they are about.

    Attributes:
        source: what `prefill` takes of that.
        mask: 0 where that is padding, int64[batch, length], of a source that has a mask.
        tokens: those of a source of text, int64[rows, length].
    """

    source: tuple[Any, ...]
    mask: tuple[np.ndarray, ...]
    tokens: np.ndarray | None

    @property
    def read(self) -> np.ndarray | None:
        """See `Prompt.read`."""
        return self.tokens


class EncoderDecoderModel(LanguageModel):
    """Generates from a source; `pipeline.generation.compile` and `load` make it.

    `generate` gives int64[rows, begun + tokens], the text that follows with the tokens that it begins with, as
    transformers does: `decoder_input_ids`, or `decoder_start_token_id` alone. A source is `input_ids` with an
    `attention_mask` that may be padding anywhere in a row; or what the model reads instead, by name, as
    `input_features` or `pixel_values`.

    Attributes:
        prefill: takes a source, and the first token into the cache: (int64[batch, length], int64[batch, length],
            int64[batch, 1]) -> f32[batch, vocabulary]; (what is read by name, int64[batch, 1]) where that is no text.
        decode: takes one token more: (int64[batch, 1], int64[filled], the numbers from 0, int64[batch, length]) ->
            likewise; the mask of the source, which is the last, only where it has one.
        max_source_length: how many tokens of a source it has room for, or how many vectors it makes of one.
    """

    kind = "models with an encoder"

    def __init__(self, prefill: Executable, decode: Executable, settings: Settings, tokenizer: bytes | None = None):
        super().__init__(prefill, decode, None, settings, tokenizer)
        self.max_source_length = int(prefill.buffers["source.keys_0"].shape[-1])
        self._shortest_source = _shortest_source(prefill)

    def first_new(self, input_ids: Any) -> int:
        """See `LanguageModel.first_new`: one, whatever the source."""
        return 1

    def rows(self) -> TextRows:
        """Not there: rows would have to have sources of their own."""
        raise OptionError("rows: models with an encoder take their sources at once: use generate or stream")

    def _call(
        self, input_ids: Any, attention_mask: Any, given: dict[str, Any]
    ) -> tuple[Prompt, Settings, ArrayLibrary | None]:
        names = self._inputs.names
        settings_given = {name: value for name, value in given.items() if name not in (*names, "decoder_input_ids")}
        given = {name: value for name, value in given.items() if name not in settings_given}
        if attention_mask is not None:
            given["attention_mask"] = attention_mask
        if input_ids is not None:  # transformers has texts begin with these, too, where a source is given by its name
            main = next((name for name in names if name != "attention_mask"), "input_ids")
            given["decoder_input_ids" if main in given else main] = input_ids
        begun = given.pop("decoder_input_ids", None)
        library = next(filter(None, map(library_of, (*given.values(), begun))), None)
        settings = self.settings.of_call(settings_given, library)
        self._check(None, settings)
        copies = settings.copies
        source: tuple[Any, ...]
        if names:
            rows, inputs = self._inputs.taken(given, copies)
            source, mask, tokens = (inputs,), inputs.get("attention_mask"), None
        else:
            rows, ids, mask = self._source(given.get("input_ids"), given.get("attention_mask"), copies)
            source, tokens = (ids, mask), np.repeat(integers("input_ids", given.get("input_ids")), copies, 0)
        first = np.repeat(self._begun(begun, rows, settings), copies, 0)
        padding = np.zeros(self.batch, np.int64)
        masks = () if mask is None else (mask,)
        prompt = SourcePrompt(first, filled_up(first, self.batch), padding, source, masks, tokens)
        return prompt, settings, library

    def _source(self, input_ids: Any, attention_mask: Any, copies: int) -> tuple[int, np.ndarray, np.ndarray]:
        """How many rows a source of tokens has, and these with their mask, int64[batch, length], as they are taken.

        Raises:
            ArgumentError: it has no rows or too many, or a row has no tokens or too many.
        """
        ids = integers("input_ids", input_ids)
        mask = np.ones_like(ids) if attention_mask is None else integers("attention_mask", attention_mask)
        if not 1 <= len(ids) * copies <= self.batch:
            counted = f"{len(ids)} rows" if copies == 1 else f"{len(ids)} rows of {copies} texts each"
            raise ArgumentError(f"input_ids: has {counted}, the model was compiled for batch={self.batch} at most")
        if mask.shape != ids.shape:
            raise ArgumentError(
                f"attention_mask: expected the shape of input_ids, {list(ids.shape)}, got {list(mask.shape)}"
            )
        if not (mask != 0).any(1).all():
            raise ArgumentError("input_ids: a row has no tokens, or padding alone; give it the token that ends texts")
        missing = ((0, 0), (0, max(self._shortest_source - ids.shape[1], 0)))
        if ids.shape[1] > self.max_source_length:
            raise ArgumentError(
                f"input_ids: {ids.shape[1]} tokens are more than the model was compiled for, "
                f"max_source_length={self.max_source_length}"
            )
        source, mask = (np.pad(filled_up(np.repeat(array, copies, 0), self.batch), missing) for array in (ids, mask))
        return len(ids), source, mask

    def _begun(self, given: Any, rows: int, settings: Settings) -> np.ndarray:
        """What texts begin with, int64[rows, begun].

        Raises:
            ArgumentError: a caller gives something else.
            OptionError: neither a caller nor the settings say it.
        """
        first = settings.decoder_start_token_id
        if given is None:
            if first is None:
                raise OptionError("decoder_start_token_id: the model's generation_config has none; give it")
            return np.full((rows, 1), first, np.int64)
        begun = integers("decoder_input_ids", given)
        if len(begun) != rows or not begun.shape[1]:
            raise ArgumentError(f"decoder_input_ids: expected tokens for {rows} rows, got {list(begun.shape)}")
        if first is None or not settings.adds_decoder_start or (begun[:, 0] == first).any():
            return begun
        return np.pad(begun, ((0, 0), (1, 0)), constant_values=first)

    def _logits(self, prompt: Prompt, tokens: np.ndarray, number: int, settings: Settings) -> Any:
        assert isinstance(prompt, SourcePrompt)
        if number:
            return self._step(prompt, filled_up(tokens, self.batch)[:, None], prompt.length + number - 1)
        *_, logits = self._begun_logits(prompt)
        return logits

    def _begun_logits(self, prompt: SourcePrompt) -> Iterator[Any]:
        """Takes a prompt into the cache; the logits after each of its tokens, f32[batch, vocabulary]."""
        yield self._source_logits(prompt)
        for place in range(1, prompt.length):
            yield self._step(prompt, prompt.ids[:, place : place + 1], place)

    def _source_logits(self, prompt: SourcePrompt) -> Any:
        """Reads a source; the logits after the first token."""
        return self.prefill(*prompt.source, prompt.ids[:, :1])

    def _step(self, prompt: SourcePrompt, ids: np.ndarray, place: int) -> Any:
        """The logits after tokens in a slot, int64[batch, 1]."""
        return self.decode(ids, self._slots[: 1 + place], *prompt.mask)


def _shortest_source(prefill: Executable) -> int:
    """How many tokens a source has at least, of an entry that takes tokens: what is shorter gets padding."""
    types = {argument.name: argument.type for argument in prefill.signature.arguments}
    ids = types.get("source_ids")
    return SHORTEST if ids is None or isinstance(ids.shape[1], str) else int(ids.shape[1])
