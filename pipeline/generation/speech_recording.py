"""Sounds for Whisper, and how far they have been heard: the next windows, and what was heard before them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pipeline.generation.speech_call import SpeechCall
from pipeline.generation.speech_times import Segment, segments_of
from pipeline.generation.speech_tokens import SpeechTokens
from pipeline.runtime.call.array_library import ArrayLibrary


@dataclass
class SpeechRecording:
    """The sounds of some rows.

    Attributes:
        call: what is asked for.
        others: what the call says besides, by name.
        sounds: what the model reads of them, by name, [rows, .., frames].
        library: that of the caller's features.
        ends: how many frames of each row there are.
        copies: how many of the rows one of the caller's has become.
        first_begun: what the text of the first window begins with, int64[rows, count], if the caller says so.
        longest: how many tokens a window's text has at most, with those in front of it.
        begun: what texts begin with, int64[rows, count], once it is known.
        first_logits: those behind the first token in the first window, which the cache has, where its language was
            looked for; f32[batch, vocabulary].
        first_rows: how many of these are there for texts.
        places: how many frames of each row have been heard.
        segments: what has been heard.
        is_leading: whether what a row has heard stands in front of what comes next.
    """

    call: SpeechCall
    others: dict[str, Any]
    sounds: dict[str, np.ndarray]
    library: ArrayLibrary | None
    ends: np.ndarray
    copies: int
    first_begun: np.ndarray | None
    longest: int
    begun: np.ndarray | None = None
    first_logits: np.ndarray | None = None
    first_rows: int = 0
    places: np.ndarray = field(init=False)
    segments: list[list[Segment]] = field(init=False)
    is_leading: list[bool] = field(init=False)

    def __post_init__(self) -> None:
        self.places = np.zeros_like(self.ends)
        self.segments = [[] for _ in self.ends]
        self.is_leading = [self.call.condition_on_prev_tokens] * len(self.ends)

    @property
    def active(self) -> list[int]:
        """The rows of which there is more."""
        return np.flatnonzero(self.places < self.ends).tolist()

    def windows(self, rows: list[int], frames: int) -> dict[str, np.ndarray]:
        """The next frames of rows, as `sounds`, with zeros behind where there are not as many."""
        return {name: self._windows(sound, rows, frames) for name, sound in self.sounds.items()}

    def leading(self, row: int, tokens: SpeechTokens, first: int) -> np.ndarray:
        """The tokens in front of the next window's text, int64[count]; the first time is the token `first`."""
        call, prompt = self.call, self.call.prompt
        is_first_alone = call.prompt_condition_type == "first-segment"
        before = [segment.continued_by(first) for segment in self.segments[row]]
        if prompt is not None and is_first_alone:
            before.insert(0, prompt[1:] if prompt[0] == tokens.previous else prompt)
        if not self.is_leading[row] or not before:
            return np.zeros(0, np.int64) if prompt is None else prompt
        opening = [] if tokens.previous is None else [tokens.previous]
        given = np.asarray(opening, np.int64) if prompt is None or is_first_alone else prompt
        return np.concatenate([given, np.concatenate(before)[-(tokens.positions // 2 - 1) :]])

    def add(self, row: int, text: np.ndarray, first: int, window: int, stride: int) -> None:
        """Takes what a row's window says, int64[count]; other arguments as of `segments_of`."""
        place = int(self.places[row])
        segments, moved = segments_of(text, first, place, min(int(self.ends[row]) - place, window), stride)
        self.segments[row] += segments
        self.places[row] += moved

    def skip(self, row: int, window: int) -> None:
        """Goes on with what is behind a window in which nothing is said."""
        self.places[row] = min(self.places[row] + window, self.ends[row])

    def _windows(self, sound: np.ndarray, rows: list[int], frames: int) -> np.ndarray:
        windows = np.zeros((len(rows), *sound.shape[1:-1], frames), sound.dtype)
        for window, row in zip(windows, rows, strict=True):
            part = sound[row, ..., self.places[row] : min(self.places[row] + frames, self.ends[row])]
            window[..., : part.shape[-1]] = part
        return windows
