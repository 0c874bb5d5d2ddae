"""Drafts: guesses at what follows, which the model looks at in one step and keeps as far as they are right."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pipeline.errors import OptionError
from pipeline.generation.sampling import Draw
from pipeline.generation.settings import Settings

if TYPE_CHECKING:
    from pipeline.generation.language_model import LanguageModel

#: What a wholly accepted draft adds to the length of the next one of an assistant, and what any other takes from it.
_LONGER, _SHORTER = 2, 1


@dataclass(frozen=True)
class Draft:
    """A guess at what follows a text.

    Attributes:
        tokens: int64[count].
        likely: f32[count, vocabulary], the probabilities by which they were drawn; None where they were not drawn.
        found: how many there were before some were left out because that many cannot follow.
    """

    tokens: np.ndarray
    likely: np.ndarray | None = None
    found: int = 0

    def first(self, count: int) -> Draft:
        """The first of its tokens."""
        return Draft(self.tokens[:count], None if self.likely is None else self.likely[:count], self.found)


class Drafts(ABC):
    """Where drafts come from.

    Attributes:
        drafted: how many tokens were guessed.
        accepted: how many of them the model chose itself.
    """

    def __init__(self, size: int):
        """Begins with drafts of `size` tokens."""
        self.size, self.drafted, self.accepted = size, 0, 0

    @abstractmethod
    def after(self, texts: Sequence[np.ndarray], counts: Sequence[int]) -> list[Draft]:
        """At most so many tokens that may follow each text, int64[length]; none where nothing suggests itself."""

    def judged(self, drafted: int, accepted: int) -> None:
        """Learns how many tokens of the last drafts were right."""
        self.drafted += drafted
        self.accepted += accepted


class PromptLookup(Drafts):
    """What followed in the text when its last tokens stood there before."""

    def __init__(self, size: int, longest: int, end: Sequence[int] = (), takes_first: bool = False):
        """Compares `longest` of the last tokens at first, and then fewer.

        Args:
            end: tokens that no draft has.
            takes_first: of several places takes the first, as transformers does.
        """
        super().__init__(size)
        self._longest, self._end, self._takes_first = longest, end, takes_first

    def after(self, texts: Sequence[np.ndarray], counts: Sequence[int]) -> list[Draft]:
        """See `Drafts`; of several places the last that has a whole draft behind it, or else the first."""
        return [self._found(text, count) for text, count in zip(texts, counts, strict=True)]

    def _found(self, text: np.ndarray, count: int) -> Draft:
        for length in range(min(self._longest, len(text) - 1), 0, -1) if count > 0 else ():
            windows = np.lib.stride_tricks.sliding_window_view(text[:-1], length)
            (ends,) = np.nonzero((windows == text[len(text) - length :]).all(1))
            ends += length
            if len(ends):
                whole = ends[:0] if self._takes_first else ends[ends + min(count, self.size) <= len(text)]
                begin = whole[-1] if len(whole) else ends[0]
                found = text[begin : begin + self.size]
                found = found[: _before_end(found, self._end)]
                return Draft(found[:count], found=len(found))
        return Draft(text[:0])


class Assistant(Drafts):
    """What a smaller model would say; its cache goes on from draft to draft.

    Drafts get longer while all of their tokens are right, and shorter otherwise.
    """

    def __init__(self, model: LanguageModel, settings: Settings, draw: Draw):
        """Chooses tokens by the settings of the model that it helps."""
        super().__init__(settings.num_assistant_tokens)
        self._model, self._draw = model, draw
        self._settings = replace(
            settings, prompt_lookup_num_tokens=0, prefill_chunk_size=None, reuse_cache=True, num_return_sequences=1
        )

    def after(self, texts: Sequence[np.ndarray], counts: Sequence[int]) -> list[Draft]:
        """See `Drafts`; none where the assistant's cache has no room for the texts."""
        length = max(map(len, texts))
        count = min(max(counts), self.size, self._model.max_length - length + 1)
        if count < 1:
            return [Draft(text[:0]) for text in texts]
        ids, mask = np.zeros((len(texts), length), np.int64), np.zeros((len(texts), length), np.int64)
        for row, text in enumerate(texts):
            ids[row, length - len(text) :], mask[row, length - len(text) :] = text, 1
        tokens, likely = self._model.guess(ids, mask, count, self._settings, self._draw)
        drafts = []
        for row, most in enumerate(counts):
            end = _before_end(tokens[row], self._settings.eos_token_id) + 1
            drafts.append(Draft(tokens[row], None if likely is None else likely[row]).first(min(end, max(most, 0))))
        return drafts

    def judged(self, drafted: int, accepted: int) -> None:
        """See `Drafts`."""
        super().judged(drafted, accepted)
        self.size = self.size + _LONGER if accepted == drafted else max(self.size - _SHORTER, 1)


def _before_end(tokens: np.ndarray, end: Sequence[int]) -> int:
    """How many tokens stand in front of the first that ends a text."""
    is_end = np.isin(tokens, end)
    return int(is_end.argmax()) if is_end.any() else len(tokens)


def drafts_for(
    model: LanguageModel, assistant: LanguageModel | None, settings: Settings, rows: int, draw: Draw
) -> Drafts | None:
    """What drafts a call asks for; None for none.

    Raises:
        OptionError: it asks for drafts and for something that does not go with them; says what.
    """
    lookup = settings.prompt_lookup_num_tokens
    if assistant is None and not lookup:
        return None
    name = "prompt_lookup_num_tokens" if assistant is None else "assistant_model"
    settings.without_functions("drafts")
    if settings.num_beams > 1:
        raise OptionError(f"{name}: drafts are for texts that go on as one: leave num_beams out")
    if assistant is None:
        longest, end = settings.max_matching_ngram_size, settings.eos_token_id
        return PromptLookup(lookup, longest, end, takes_first=settings.do_sample)
    if lookup:
        raise OptionError(
            "assistant_model: drafts come from it or from prompt_lookup_num_tokens: leave one of them out"
        )
    if not assistant.goes_back:
        raise OptionError("assistant_model: its layers keep states, so that it cannot go back where a draft is wrong")
    if assistant is model:
        raise OptionError("assistant_model: is the model itself, whose cache has one text: compile it once more")
    if assistant.vocabulary != model.vocabulary:
        raise OptionError(
            f"assistant_model: has a vocabulary of {assistant.vocabulary} tokens, the model one of {model.vocabulary}"
        )
    if assistant.batch < rows:
        raise OptionError(
            f"assistant_model: has {assistant.batch} rows, the prompt {rows}: compile it with batch={rows}"
        )
    return Assistant(assistant, settings, draw)
