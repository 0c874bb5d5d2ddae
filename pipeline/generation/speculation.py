"""Generation with drafts: a step looks at guesses at what follows in each row, and keeps those that are right.

Rows have different numbers of right guesses, and end in one slot all the same: those that are behind are moved there
in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pipeline.generation.drafts import Draft, Drafts
from pipeline.generation.prompt import Prompt, filled_up
from pipeline.generation.sampling import Draw
from pipeline.generation.settings import Settings
from pipeline.generation.token_choice import TokenChoice
from pipeline.runtime.call.array_libraries import as_numpy

if TYPE_CHECKING:
    from pipeline.generation.language_model import LanguageModel


#: How many slots texts take at least that go on by several tokens.
_FEWEST = 3


class Speculation:
    """The texts that follow a prompt.

    Each row has the tokens that it has without drafts, up to rounding; drawn ones are distributed as without.
    """

    def __init__(self, model: LanguageModel, prompt: Prompt, settings: Settings, count: int, draw: Draw):
        """Goes by `settings` for at most `count` tokens."""
        self._model, self._prompt, self._settings, self._draw = model, prompt, settings, draw
        self._rows, length = prompt.given.shape
        filler = np.full((self._rows, count), settings.filler, np.int64)
        self._known = np.concatenate([prompt.given, filler], 1)
        self._begins = prompt.given_padding
        self._choices = [
            TokenChoice(settings, length, length + count, self._begins[row : row + 1], prompt.given[row : row + 1])
            for row in range(self._rows)
        ]
        self._ends = np.full(self._rows, length)
        self._running = np.full(self._rows, count > 0)
        self._filled = 0

    @property
    def is_done(self) -> bool:
        """Whether all rows have ended."""
        return not self._running.any()

    @property
    def ready(self) -> int:
        """How many tokens of all rows are known; rows that have ended are filled up."""
        return int(self._ends[self._running].min() if self._running.any() else self._ends.max())

    def tokens(self, place: int) -> np.ndarray:
        """Those at a place that is ready, int64[rows]."""
        return self._known[:, place]

    def drafted(self, drafts: Drafts) -> list[Draft]:
        """What may follow in each row."""
        room = self._known.shape[1] - self._ends - 1
        counts = [int(count) if runs else 0 for count, runs in zip(room, self._running, strict=True)]
        return drafts.after([self._text(row) for row in range(self._rows)], counts)

    def step(self, drafts: Sequence[Draft]) -> tuple[int, int]:
        """Takes a token of each row and what is right of its draft; how many were guessed, and how many right."""
        logits, drafts = self._looked_at(drafts)
        rights = {row: self._accept(row, logits[row], drafts[row]) for row in self._those_running()}
        self._filled += 1 + max(rights.values())
        for row, right in rights.items():
            new = self._known[row, self._ends[row] : self._ends[row] + right + 1]
            is_end = np.isin(new, self._settings.eos_token_id)
            count = int(is_end.argmax()) + 1 if is_end.any() else len(new)
            new[count:] = self._settings.filler
            self._ends[row] += count
            self._running[row] = not is_end.any() and self._ends[row] < self._known.shape[1]
        return sum(len(drafts[row].tokens) for row in rights), sum(rights.values())

    def _those_running(self) -> list[int]:
        return [int(row) for row in np.flatnonzero(self._running)]

    def _text(self, row: int) -> np.ndarray:
        return self._known[row, self._begins[row] : self._ends[row]]

    def _looked_at(self, drafts: Sequence[Draft]) -> tuple[np.ndarray, Sequence[Draft]]:
        """Logits after the last token of each row and after each of its draft, f32[batch, count, vocabulary].

        Drafts are shortened to what there is room for.
        """
        model, longest = self._model, max(len(draft.tokens) for draft in drafts)
        if not self._filled:
            prompt, self._filled = self._prompt, self._prompt.length
            first = as_numpy(model.first_logits(prompt, self._settings))[:, None].copy()
            ids = self._beside(drafts, longest)
            rest = [as_numpy(model.further_logits(prompt, prompt.length, ids))] if longest else []
            return np.concatenate([first, *rest], 1), drafts
        if self._filled + longest > model.max_length:
            self._filled = max(_FEWEST, *(len(self._text(row)) for row in self._those_running()))
            longest = min(longest, model.max_length - self._filled)
            drafts = [draft.first(longest) for draft in drafts]
        ids = np.concatenate([self._aligned(), self._beside(drafts, longest)], 1)
        return as_numpy(model.further_logits(self._prompt, self._filled - 1, ids)), drafts

    def _beside(self, drafts: Sequence[Draft], count: int) -> np.ndarray:
        """Drafts as rows, int64[batch, count]."""
        ids = np.full((self._rows, count), self._settings.filler)
        for row, draft in enumerate(drafts):
            ids[row, : len(draft.tokens)] = draft.tokens
        return filled_up(ids, self._model.batch)

    def _aligned(self) -> np.ndarray:
        """Has all texts that go on end in the last slot but one of those filled; their last tokens, int64[batch, 1].

        What nobody asked for is like the first row.
        """
        ids = np.full((self._rows, self._filled), self._settings.filler)
        padding = self._prompt.padding[: self._rows].copy()
        for row in self._those_running():
            text = self._text(row)
            padding[row] = self._filled - len(text)
            ids[row, padding[row] :] = text
        batch = self._model.batch
        self._prompt = Prompt(self._prompt.given, filled_up(ids, batch), filled_up(padding, batch))
        copies = range(self._rows, batch) if self._running[0] else ()
        found = self._model.continued(self._prompt, [*self._those_running(), *copies])
        assert found == self._filled - 1
        return self._prompt.ids[:, -1:]

    def _accept(self, row: int, logits: np.ndarray, draft: Draft) -> int:
        """Puts what follows in a row there, as far as the draft is right, and one token more; how much was right."""
        count, end, choice = len(draft.tokens), self._ends[row], self._choices[row]
        if not self._settings.do_sample:
            for place in range(count + 1):
                known = self._known[row : row + 1, : end + place]
                self._known[row, end + place] = choice.likeliest(logits[place][None], known)[0]
                if place == count or self._known[row, end + place] != draft.tokens[place]:
                    break
            return place
        before = np.append(self._known[row, :end], draft.tokens)[None]
        likely = np.concatenate(
            [choice.probabilities(logits[place][None], before[:, : end + place]) for place in range(count + 1)]
        )
        tokens, right = _drawn(likely, draft, self._draw)
        self._known[row, end : end + right + 1] = tokens
        return right


def _drawn(likely: np.ndarray, draft: Draft, draw: Draw) -> tuple[np.ndarray, int]:
    """Tokens by probabilities, f32[1 + count, vocabulary], that begin with a part of a draft; and how long that is.

    What was drawn by the probabilities q is kept with a share of p / q, else drawn again by what p has more than q
    (Leviathan et al., Fast Inference from Transformers via Speculative Decoding, algorithm 1).
    """
    count = len(draft.tokens)
    if draft.likely is None or not count:
        unread = np.repeat(likely[-1:], max(draft.found - count, 0), 0)  # draws are those of the whole draft
        tokens = draw.tokens(np.concatenate([likely, unread]))
        right = _leading(tokens[:count] == draft.tokens)
        return tokens[: right + 1], right
    places = np.arange(count), draft.tokens
    with np.errstate(divide="ignore", invalid="ignore"):
        right = _leading(draw.shares(count) <= likely[places] / draft.likely[places])
    rest = likely[right]
    if right < count:
        more = np.clip(rest - draft.likely[right], 0, None)
        rest = more / more.sum() if more.any() else rest
    return np.append(draft.tokens[:right], draw.tokens(rest[None])), right


def _leading(holds: np.ndarray) -> int:
    """How many of the first elements are true."""
    return len(holds) if holds.all() else int(holds.argmin())
