"""Beam search, as transformers has it: for each prompt several texts go on side by side; the best that ended is given.

A text's score is the sum of the logarithms of its tokens' probabilities. When a text ends, that is divided by a power
of how many tokens it has, and it is kept if it is among the best that ended.
"""

from __future__ import annotations

import numpy as np

from pipeline.errors import OptionError
from pipeline.generation.prompt import Prompt
from pipeline.generation.sampling import Draw
from pipeline.generation.settings import Settings
from pipeline.generation.token_choice import TokenChoice, log_softmax, softmax, warped

#: The score of what is no text.
_NONE = np.float32(-1e9)


class Beams:
    """The texts of some prompts, `width` of each that go on and as many that ended.

    Attributes:
        is_done: whether no text of any prompt can get better.
    """

    def __init__(self, prompt: Prompt, count: int, settings: Settings, draw: Draw):
        """Begins with a prompt in which each row stands `width` times, to which `count` tokens may come."""
        self._settings, self._width, self._draw, given = settings, settings.num_beams, draw, prompt.given
        self._fewest = max(2, 1 + len(settings.eos_token_id))  # tokens of a text of which one ends none
        prompts, length = len(given) // self._width, given.shape[1]
        self._begin, self._length, self._end = length, length, length + count
        self._choice = TokenChoice.of(prompt, settings, count)
        self._open = np.full((prompts, self._width, self._end + count), _filler(settings), np.int64)
        self._open[..., :length] = given.reshape(prompts, self._width, length)
        self._open[..., self._end :] = -1  # behind each text the rows that its new tokens go on from
        self._scores: np.ndarray = np.full((prompts, self._width), _NONE)
        self._scores[:, 0] = 0  # or each beam of a prompt would go on with the same tokens
        self._ended = self._open.copy()
        self._ended_scores: np.ndarray = np.full((prompts, self._width), _NONE)
        self._has_ended = np.zeros((prompts, self._width), bool)
        self._lengths = np.full((prompts, self._width), length)
        self._may_improve = np.ones((prompts, 1), bool)
        self.is_done = count < 1

    def advance(self, logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """From f32[prompts * width, vocabulary] each open text's last token, and the row that it goes on from."""
        known = self._open[..., : self._length].reshape(len(logits), -1)
        likely = self._choice.processed(log_softmax(logits), known)
        if self._settings.do_sample:
            likely = warped(likely, self._settings, self._fewest)
        likely = self._choice.kept(likely)
        prompts, vocabulary = len(self._open), likely.shape[1]
        scores = (likely.reshape(prompts, self._width, vocabulary) + self._scores[:, :, None]).reshape(prompts, -1)
        best = self._continuations(scores, self._fewest * self._width)
        found, sources, tokens = np.take_along_axis(scores, best, 1), best // vocabulary, best % vocabulary
        texts = np.take_along_axis(self._open, sources[:, :, None], 1)
        texts[:, :, self._length] = tokens
        rows_before = sources + np.arange(prompts)[:, None] * self._width
        texts[:, :, self._end + self._length - self._begin] = rows_before
        ends = np.isin(tokens, self._settings.eos_token_id) | (self._length + 1 >= self._end)
        self._keep_ended(texts, found, ends)
        going_on = found + ends * _NONE
        chosen = _greatest(going_on, self._width)
        self._open = np.take_along_axis(texts, chosen[:, :, None], 1)
        self._scores = np.take_along_axis(going_on, chosen, 1)
        self._length += 1
        self._look_ahead(bool(ends.all()))
        rows = np.take_along_axis(rows_before, chosen, 1)
        return self._open[:, :, self._length - 1].reshape(-1), rows.reshape(-1)

    def _continuations(self, scores: np.ndarray, count: int) -> np.ndarray:
        """The best places of each row of scores, or some that are drawn, int64[rows, count]."""
        if not self._settings.do_sample:
            return _greatest(scores, count)
        likely = softmax(scores)
        if ((likely > 0).sum(-1) < count).any():
            raise OptionError(
                f"num_beams: {count} of the tokens that {self._width} beams go on with are drawn, of which fewer are "
                "possible: raise top_k or top_p, or leave do_sample out"
            )
        return self._draw.several(likely, count)

    def texts(self) -> np.ndarray:
        """The best texts of each prompt, int64[prompts * texts, length]; what ended early is filled up."""
        count = self._settings.num_return_sequences
        length = self._lengths[:, :count].max()
        if self._choice.record is not None:
            sources = self._ended[:, :count, self._end : self._end + length - self._begin]
            self._choice.record.beam_indices = sources.reshape(-1, length - self._begin)
            self._choice.record.sequences_scores = self._ended_scores[:, :count].reshape(-1)
        return self._ended[:, :count, :length].reshape(-1, length)

    def _keep_ended(self, texts: np.ndarray, found: np.ndarray, ends: np.ndarray) -> None:
        """Takes those of the best `width` texts that end into those that ended; worse ones end unseen."""
        ends = ends & (np.arange(texts.shape[1]) < self._width)
        count = self._length + 1
        scores = found / np.float32((count - self._begin) ** self._settings.length_penalty)
        full = self._has_ended.all(1, keepdims=True) & (self._settings.early_stopping is True)
        for is_out in (full, ~self._may_improve, ~ends):
            scores = scores + is_out * _NONE
        scores = np.concatenate([self._ended_scores, scores], 1)
        best = _greatest(scores, self._width)
        self._ended_scores = np.take_along_axis(scores, best, 1)
        self._ended = np.take_along_axis(np.concatenate([self._ended, texts], 1), best[:, :, None], 1)
        self._has_ended = np.take_along_axis(np.concatenate([self._has_ended, ends], 1), best, 1)
        lengths = np.concatenate([self._lengths, np.full(texts.shape[:2], count)], 1)
        self._lengths = np.take_along_axis(lengths, best, 1)

    def _look_ahead(self, all_end: bool) -> None:
        """Finds out whether an open text may yet become better than the worst that ended."""
        stopping, penalty = self._settings.early_stopping, self._settings.length_penalty
        end = self._end if stopping == "never" and penalty > 0 else self._length
        possible = self._scores[:, :1] / np.float32((end - self._begin) ** penalty)
        worst = np.where(self._has_ended, self._ended_scores.min(1, keepdims=True), _NONE)
        self._may_improve = self._may_improve & (possible > worst).any(1, keepdims=True)
        enough = stopping is True and bool(self._has_ended.all())
        self.is_done = all_end or enough or not self._may_improve.any()


def _filler(settings: Settings) -> int:
    """What follows in a text that ended early: transformers takes a 0 for padding for none here."""
    return settings.pad_token_id or (settings.eos_token_id[0] if settings.eos_token_id else 0)


def _greatest(scores: np.ndarray, count: int) -> np.ndarray:
    """The places of the greatest scores of each row, the greatest first."""
    count = min(count, scores.shape[1])
    found = np.argpartition(-scores, count - 1, 1)[:, :count]
    found.sort(1)
    order = np.argsort(-np.take_along_axis(scores, found, 1), 1, kind="stable")
    return np.take_along_axis(found, order, 1)
