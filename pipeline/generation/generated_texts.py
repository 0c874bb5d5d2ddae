"""What `generate` gives where more than tokens is asked for: scores and logits of each step, the scores of beams."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np


@dataclass
class StepRecord:
    """What is kept of the steps in which a call's tokens are chosen.

    Attributes:
        scores: those that tokens are chosen by, f32[rows, vocabulary] of each step; None if nobody asks for them.
        logits: likewise as the model gives them.
        sequences_scores: those of the best beams, f32[texts].
        beam_indices: which row each token of these goes on from, int64[texts, tokens], and -1 behind their ends.
    """

    scores: list[np.ndarray] | None
    logits: list[np.ndarray] | None
    sequences_scores: np.ndarray | None = None
    beam_indices: np.ndarray | None = None

    def add_logits(self, logits: np.ndarray) -> None:
        """Keeps the logits of a step, if they are asked for."""
        if self.logits is not None:
            self.logits.append(np.array(logits))

    def add_scores(self, scores: np.ndarray) -> None:
        """Likewise its scores."""
        if self.scores is not None:
            self.scores.append(np.array(scores))


@dataclass(frozen=True)
class GeneratedTexts:
    """Texts, and what is known of how they came about; as transformers' outputs, by names or by places.

    Attributes:
        sequences: int64[rows, tokens].
        scores: with `output_scores`, f32[rows, vocabulary] of each step; of beams the logarithms of probabilities.
        logits: with `output_logits`, f32[rows, vocabulary] of each step.
        sequences_scores: with `output_scores`, those of beams, f32[rows].
        beam_indices: of beams, which row each token goes on from, int64[rows, tokens], and -1 behind a text's end.
    """

    sequences: Any
    scores: tuple[Any, ...] | None
    logits: tuple[Any, ...] | None
    sequences_scores: Any = None
    beam_indices: Any = None

    @staticmethod
    def of(sequences: np.ndarray, record: StepRecord, in_library: Callable[[np.ndarray], Any]) -> GeneratedTexts:
        """What a call gives, in its library."""

        def steps(kept: list[np.ndarray] | None) -> tuple[Any, ...] | None:
            return None if kept is None else tuple(map(in_library, kept))

        def told(array: np.ndarray | None) -> Any:
            return None if array is None else in_library(array)

        of_beams = None if record.scores is None else record.sequences_scores
        return GeneratedTexts(
            in_library(sequences),
            steps(record.scores),
            steps(record.logits),
            told(of_beams),
            told(record.beam_indices),
        )

    def __getitem__(self, key: str | int) -> Any:
        """By its name, or the one of that number that there is.

        Raises:
            KeyError, IndexError: there is none.
        """
        found = {field.name: value for field in fields(self) if (value := getattr(self, field.name)) is not None}
        return found[key] if isinstance(key, str) else tuple(found.values())[key]
