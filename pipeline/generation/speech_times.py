"""Times in Whisper's texts: where they may stand, and what they say of where a sound's next window begins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.generation.token_choice import log_softmax

#: Seconds between one token for a time and the next, and of a frame of features.
_TIME, _FRAME = 0.02, 0.01


@dataclass(frozen=True)
class TimeRules:
    """Scores of texts with times, as transformers' WhisperTimeStampLogitsProcessor makes them.

    A text begins with a time; times come in pairs but at its end, and never fall; and where all times together are
    likelier than any word, one of them comes.

    Attributes:
        first: the token of the first time; that in front of it, which says that no times come, never comes.
        end: the token that ends texts, below which words are.
        begin: how many tokens stand in front of a text.
        latest_start: how many times after the first one a text begins with at most; None for any.
    """

    first: int
    end: int
    begin: int
    latest_start: int | None

    def __call__(self, before: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Scores, f32[rows, vocabulary], after the tokens int64[rows, count]."""
        changed = scores.copy()
        changed[:, self.first - 1] = -np.inf
        for row, text in zip(changed, before[:, self.begin :].tolist(), strict=True):
            self._allow(row, text)
        likely = log_softmax(changed)
        with np.errstate(divide="ignore"):  # no time may come
            times = np.log(np.exp(likely[:, self.first :]).sum(-1))
        changed[times > likely[:, : self.first].max(-1), : self.first] = -np.inf
        return changed

    def _allow(self, scores: np.ndarray, text: list[int]) -> None:
        """Sets the scores of what must not follow a text to -inf."""
        is_time = [token >= self.first for token in text]
        opened = is_time[-1:] == [True] and is_time[-2:-1] == [False]
        if opened:
            scores[: self.end] = -np.inf
        elif is_time[-1:] == [True]:
            scores[self.first :] = -np.inf
        times = [token for token in text if token >= self.first]
        if times:
            scores[self.first : times[-1] + (not opened)] = -np.inf
        if not text:
            scores[: self.first] = -np.inf
            if self.latest_start is not None:
                scores[self.first + self.latest_start + 1 :] = -np.inf


@dataclass(frozen=True)
class Segment:
    """A part of a text, from one time to the next.

    Attributes:
        start, end: in seconds from the sound's begin.
        tokens: int64[count], with those of its times.
    """

    start: float
    end: float
    tokens: np.ndarray

    def continued_by(self, first: int) -> np.ndarray:
        """Its tokens in front of what follows, which begins with the second of two times at its end itself."""
        doubled = len(self.tokens) > 2 and self.tokens[-2] >= first
        return self.tokens[:-1] if doubled else self.tokens


def segments_of(tokens: np.ndarray, first: int, place: int, frames: int, stride: int) -> tuple[list[Segment], int]:
    """The segments of a window's text, and how many frames later the next window begins.

    Args:
        tokens: int64[count], without the token that ends texts.
        first: the token of the first time.
        place: at which frame of the sound the window begins.
        frames: how many frames of it the sound has.
        stride: how many frames there are from one time to the next.
    """
    begin = place * _TIME / stride
    is_time = (tokens >= first).tolist()
    cuts = [number + 1 for number in range(len(tokens) - 1) if is_time[number] and is_time[number + 1]]
    if not cuts:
        last = int(np.float32(frames) * np.float32(_FRAME) / np.float32(_TIME))  # rounded as a tensor of integers is
        times = tokens[is_time]
        if len(times) and times[-1] != first:
            last = int(times[-1]) - first
        return [Segment(begin, begin + last * _TIME, tokens)], frames
    ends_alone = is_time[-2:] == [False, True]  # nothing is said behind that time
    if ends_alone:
        cuts.append(len(tokens))
    else:
        cuts[-1] += 1  # the second time of the pair stays, which says that it is one
    found = []
    for low, high in zip([0, *cuts[:-1]], cuts, strict=True):
        part = tokens[low:high]
        closing = -2 if high == cuts[-1] and not ends_alone else -1
        start, end = (begin + (int(token) - first) * _TIME for token in (part[0], part[closing]))
        found.append(Segment(start, end, part))
    if ends_alone:
        return found, frames
    return found, (int(tokens[cuts[-1] - 2]) - first) * stride or frames
