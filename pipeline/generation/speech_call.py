"""What calls of Whisper's `generate` say besides `Settings`, in transformers' words."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any

import numpy as np

from pipeline.errors import ArgumentError, OptionError
from pipeline.generation.settings import Settings
from pipeline.generation.speech_tokens import SpeechTokens
from pipeline.generation.token_choice import log_softmax, warped
from pipeline.runtime.call.array_libraries import as_numpy, library_of

#: What the text in front of a window begins with: `prompt_ids` in the first one, or in each.
_PROMPTED = ("first-segment", "all-segments")


@dataclass(frozen=True)
class SpeechCall:
    """What a call says; what it does not is `SpeechTokens.usual`.

    Attributes:
        language: one for all rows, or a list of one for each; None for the likeliest of each.
        task: `transcribe` or `translate`.
        return_timestamps: whether texts have times; None where sounds are longer than a window.
        return_segments: whether segments are given, too.
        temperature: that at which tokens are drawn, 0 or None for the likeliest; of several the next one is for windows
            whose text is not good enough.
        compression_ratio_threshold: how many times smaller than it is a text may become, which repeats itself then.
        logprob_threshold: the mean logarithm of the probability of a text's tokens at least.
        no_speech_threshold: how likely silence is at most in a window whose text is below `logprob_threshold`; else it
            has none.
        condition_on_prev_tokens: whether the text before stands in front of a window's.
        prompt_ids: tokens in front of texts, int64[count], as a processor's `get_prompt_ids` gives them.
        prompt_condition_type: see `_PROMPTED`.
    """

    language: Any = None
    task: str | None = None
    return_timestamps: bool | None = None
    return_segments: bool = False
    temperature: Any = None
    compression_ratio_threshold: float | None = None
    logprob_threshold: float | None = None
    no_speech_threshold: float | None = None
    condition_on_prev_tokens: bool = False
    prompt_ids: Any = None
    prompt_condition_type: str = _PROMPTED[0]

    @staticmethod
    def of(given: Mapping[str, Any], tokens: SpeechTokens) -> SpeechCall:
        """What a call gives of these.

        Raises:
            OptionError: a value is out of range, or does not go with another.
            ArgumentError: `prompt_ids` are no tokens.
        """
        known = {name: given[name] for name in SpeechCall.names() & given.keys() if given[name] is not None}
        call = SpeechCall(**{"language": tokens.language, "task": tokens.task, **tokens.usual, **known})
        call.check(tokens)
        return call

    @staticmethod
    def names() -> set[str]:
        """By which calls give them."""
        return {found.name for found in fields(SpeechCall)}

    @staticmethod
    def of_configs() -> set[str]:
        """By which generation configs say some of them; a temperature of theirs is not asked."""
        return SpeechCall.names() - {"temperature", "prompt_ids", "return_segments"}

    @property
    def temperatures(self) -> tuple[float, ...]:
        """Those at which a window's text is tried; 0 for the likeliest tokens."""
        given = self.temperature
        return tuple(given) if isinstance(given, (list, tuple)) else (0.0 if given is None else given,)

    @property
    def prompt(self) -> np.ndarray | None:
        """`prompt_ids`, int64[count]."""
        if self.prompt_ids is None:
            return None
        found = np.asarray(self.prompt_ids) if library_of(self.prompt_ids) is None else as_numpy(self.prompt_ids)
        if found.ndim != 1 or not found.size or found.dtype.kind not in "iu":
            raise ArgumentError(f"prompt_ids: expected tokens [count], got {found.dtype}{list(found.shape)}")
        return found.astype(np.int64)

    def at(self, temperature: float, settings: Settings) -> Settings:
        """Settings for a try at a temperature."""
        if not temperature:
            return settings.but(do_sample=False, temperature=1.0)
        return settings.but(do_sample=True, temperature=temperature)

    def is_poor(self, text: np.ndarray, likelihood: float, vocabulary: int) -> bool:
        """Whether a text, int64[count], is to be tried again at another temperature."""
        ratio, least = self.compression_ratio_threshold, self.logprob_threshold
        return (ratio is not None and _compression(text, vocabulary) > ratio) or (
            least is not None and likelihood < least
        )

    def is_silence(self, likelihood: float, silence: float) -> bool:
        """Whether a window has no text, by its text's likelihood and how likely silence is."""
        most, least = self.no_speech_threshold, self.logprob_threshold
        return most is not None and least is not None and likelihood < least and silence > most

    def check(self, tokens: SpeechTokens) -> None:
        """Raises `OptionError` if a value is out of range, or does not go with another."""
        if not all(isinstance(found, Real) and found >= 0 for found in self.temperatures) or (not self.temperatures):
            raise OptionError(f"temperature: expected a number from 0, or a list of some, got {self.temperature!r}")
        for name in ("compression_ratio_threshold", "logprob_threshold", "no_speech_threshold"):
            found = getattr(self, name)
            if found is not None and not isinstance(found, Real):
                raise OptionError(f"{name}: expected a number, got {found!r}")
        if self.return_timestamps and tokens.last is None:
            raise OptionError("return_timestamps: the model's generation_config has no no_timestamps_token_id: set it")
        if self.no_speech_threshold is not None and (self.logprob_threshold is None or tokens.last is None):
            raise OptionError("no_speech_threshold: is for windows below logprob_threshold: give that, too")
        if self.prompt_condition_type not in _PROMPTED:
            raise OptionError(
                f"prompt_condition_type: expected one of {', '.join(_PROMPTED)}, got {self.prompt_condition_type!r}"
            )
        if self.prompt_condition_type == _PROMPTED[1] and not self.condition_on_prev_tokens:
            raise OptionError("prompt_condition_type: 'all-segments' is for condition_on_prev_tokens=True: set that")


class Likelihoods:
    """A processor of logits that changes none: it looks at how likely the tokens are that come."""

    def __init__(self, settings: Settings):
        self._settings = settings
        self._last: np.ndarray | None = None
        self._steps: list[np.ndarray] = []

    def __call__(self, before: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """The scores f32[rows, vocabulary], after the tokens int64[rows, count]."""
        self._add(before)
        drawn = self._settings.do_sample
        kept = warped(scores, self._settings) * np.float32(self._settings.temperature) if drawn else scores
        self._last = log_softmax(kept)
        return scores

    def means(self, texts: np.ndarray, counts: list[int]) -> list[float]:
        """The mean logarithm of the probability of the first tokens that came, of whole texts int64[rows, length]."""
        self._add(texts)
        self._last = None
        steps = np.stack(self._steps, -1) if self._steps else np.zeros((len(texts), 0), np.float32)
        return [float(row[:count].sum() / max(count, 1)) for row, count in zip(steps, counts, strict=True)]

    def _add(self, texts: np.ndarray) -> None:
        if self._last is not None:
            self._steps.append(np.take_along_axis(self._last, texts[:, -1:], -1)[:, 0])


def _compression(text: np.ndarray, vocabulary: int) -> float:
    """How many times smaller than a text's tokens their compressed bytes are."""
    size = int(np.log2(vocabulary) / 8) + 1
    written = b"".join(token.to_bytes(size, "little") for token in text.tolist())
    return len(written) / len(zlib.compress(written))
