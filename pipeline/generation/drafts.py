"""Drafts: guesses at what follows, which the model looks at in one step and keeps as far as they are right."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from pipeline.errors import OptionError
from pipeline.generation.settings import Settings

if TYPE_CHECKING:
    from pipeline.generation.language_model import LanguageModel

#: What a wholly accepted draft adds to the length of the next one of an assistant, and what any other takes from it.
_LONGER, _SHORTER = 2, 1


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
    def after(self, text: np.ndarray, count: int) -> np.ndarray:
        """At most `count` tokens that may follow a text, int64[length]; none where nothing suggests itself."""

    def judged(self, drafted: int, accepted: int) -> None:
        """Learns how many tokens of the last draft were right."""
        self.drafted += drafted
        self.accepted += accepted


class PromptLookup(Drafts):
    """What followed in the text when its last tokens stood there before."""

    def __init__(self, size: int, longest: int):
        """Compares `longest` of the last tokens at first, and then fewer."""
        super().__init__(size)
        self._longest = longest

    def after(self, text: np.ndarray, count: int) -> np.ndarray:
        """See `Drafts`; of several places the last that has a whole draft behind it, or else the first."""
        count = min(count, self.size)
        for length in range(min(self._longest, len(text) - 1), 0, -1) if count > 0 else ():
            windows = np.lib.stride_tricks.sliding_window_view(text[:-1], length)
            (ends,) = np.nonzero((windows == text[len(text) - length :]).all(1))
            ends += length
            if len(ends):
                whole = ends[ends + count <= len(text)]
                begin = whole[-1] if len(whole) else ends[0]
                return text[begin : begin + count]
        return text[:0]


class Assistant(Drafts):
    """What a smaller model would say; its cache goes on from draft to draft.

    Drafts get longer while all of their tokens are right, and shorter otherwise.
    """

    def __init__(self, model: LanguageModel, size: int):
        super().__init__(size)
        self._model = model

    def after(self, text: np.ndarray, count: int) -> np.ndarray:
        """See `Drafts`; none where the assistant's cache has no room for the text."""
        count = min(count, self.size, self._model.max_length - len(text) + 1)
        if count < 1:
            return text[:0]
        whole = self._model.generate(
            text[None],
            max_new_tokens=count,
            reuse_cache=True,
            do_sample=False,
            num_beams=1,
            repetition_penalty=1.0,
            prompt_lookup_num_tokens=0,
            eos_token_id=(),
        )
        return whole[0, len(text) :]

    def judged(self, drafted: int, accepted: int) -> None:
        """See `Drafts`."""
        super().judged(drafted, accepted)
        self.size = self.size + _LONGER if accepted == drafted else max(self.size - _SHORTER, 1)


def drafts_for(model: LanguageModel, assistant: LanguageModel | None, settings: Settings, rows: int) -> Drafts | None:
    """What drafts a call asks for; None for none.

    Raises:
        OptionError: it asks for drafts and for something that does not go with them; says what.
    """
    lookup = settings.prompt_lookup_num_tokens
    if assistant is None and not lookup:
        return None
    name = "prompt_lookup_num_tokens" if assistant is None else "assistant_model"
    if settings.do_sample or settings.num_beams > 1:
        raise OptionError(f"{name}: drafts are for the likeliest tokens: leave do_sample and num_beams out")
    if rows > 1:
        raise OptionError(f"{name}: drafts are for one row, the prompt has {rows}")
    if assistant is None:
        return PromptLookup(lookup, settings.max_matching_ngram_size)
    if lookup:
        raise OptionError(
            "assistant_model: drafts come from it or from prompt_lookup_num_tokens: leave one of them out"
        )
    if assistant is model:
        raise OptionError("assistant_model: is the model itself, whose cache has one text: compile it once more")
    if assistant.vocabulary != model.vocabulary:
        raise OptionError(
            f"assistant_model: has a vocabulary of {assistant.vocabulary} tokens, the model one of {model.vocabulary}"
        )
    return Assistant(assistant, settings.num_assistant_tokens)
