"""Texts in the rows of one cache that begin and end when they like: continuous batching.

A step takes one token of each row, all of them in the same slot. So a text that begins later has padding in front, as a
short prompt beside a long one: its last slot is that of the others. Positions are counted from a row's first token, so
that keys and values may move to other slots: where there are no more, or a prompt is longer than the texts so far, all
rows move.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from pipeline.errors import ArgumentError, OptionError, PipelineError
from pipeline.generation.cache import CacheRows
from pipeline.generation.prompt import SHORTEST, integers
from pipeline.generation.sampling import NumpyDraw
from pipeline.generation.settings import Settings
from pipeline.generation.token_choice import TokenChoice
from pipeline.runtime.call.array_libraries import as_numpy, library_of
from pipeline.runtime.executable import Executable

#: So many tokens take about as long as one: weights are read once for all of them.
_FREE_TOKENS = 8


class TextRow:
    """A text that goes on; `TextRows.start` makes it.

    Attributes:
        settings: what it goes by.
        prompt: its tokens, int64[length].
        tokens: those that have come.
        reason: why it is done: "stop" for a token that ends texts, "length" for as many as were asked for, "ended" for
            `TextRows.end`; None while it goes on.
    """

    def __init__(self, prompt: np.ndarray, settings: Settings, count: int):
        self.prompt, self.settings = prompt, settings
        self.tokens: list[int] = []
        self.reason: str | None = None
        self._count, self._draw = count, NumpyDraw()
        self._choice = TokenChoice(settings, len(prompt), len(prompt) + count, np.zeros(1, np.int64), prompt[None])

    @property
    def is_done(self) -> bool:
        """Whether no token comes any more."""
        return self.reason is not None

    @property
    def filled(self) -> int:
        """How many slots it takes, once it is in the cache: those of all tokens but the last one."""
        return len(self.prompt) + max(len(self.tokens) - 1, 0)

    def take(self, logits: np.ndarray) -> int:
        """Chooses the next token from f32[vocabulary]."""
        before = np.concatenate([self.prompt, np.array(self.tokens, np.int64)])
        (token,) = self._choice.next_tokens(logits[None], before[None], self._draw).tolist()
        self.tokens.append(token)
        if token in self.settings.eos_token_id:
            self.reason = "stop"
        elif len(self.tokens) == self._count:
            self.reason = "length"
        return int(token)


def vocabulary_of(entry: Executable) -> int:
    """How many tokens there are, of an entry that gives logits."""
    logits = entry.signature.results[0].type
    assert logits is not None
    return int(logits.shape[-1])


class TextRows:
    """The rows of a model's cache; `LanguageModel.rows` makes it.

    rows = lm.rows()
    row = rows.start(ids, max_new_tokens=100)  # when it likes, if rows.free
    for row, token in rows.step():  # of each row that has begun and not ended
        ...
    """

    def __init__(
        self,
        prefill: Executable,
        decode: Executable,
        join: Callable[[], Executable] | None,
        cache: CacheRows,
        sizes: tuple[int, int],
        settings: Settings,
        held: Callable[[TextRows], AbstractContextManager[None]],
    ):
        """Takes the entries and their cache, how many rows and slots it has, and what is entered to write to it.

        `join` gives the entry that takes a prompt of one row into a cache of its own; None where there is none.
        """
        self._prefill, self._decode, self._join, self._cache = prefill, decode, join, cache
        self._settings, self._held = settings, held
        self._batch, self._room = sizes
        self._rows: list[TextRow | None] = [None] * self._batch
        self._waiting: list[TextRow] = []
        self._filled = 0

    @property
    def free(self) -> int:
        """How many texts more may start."""
        return self._batch - len(self._waiting) - len(self._running())

    def start(self, input_ids: Any, **settings: Any) -> TextRow:
        """A text that begins with these tokens, integers [length] of any library; `step` gives what follows.

        Args:
            settings: as of `LanguageModel.generate`; beams, drafts and `reuse_cache` are not there.

        Raises:
            ArgumentError: the prompt is empty, or it and its new tokens are more than the cache has room for.
            OptionError: a setting is unknown, out of range, or not there.
            PipelineError: no row is free.
        """
        chosen = self._settings.of_call(settings, library_of(input_ids))
        chosen.without_functions("rows that come and go", but=("logits_processor", "prefix_allowed_tokens_fn"))
        for name in ("prompt_lookup_num_tokens", "reuse_cache", "prefill_chunk_size"):
            if getattr(chosen, name):
                raise OptionError(f"{name}: is not there for rows that come and go: leave it out")
        for name in ("num_beams", "num_return_sequences"):
            if getattr(chosen, name) > 1:
                raise OptionError(f"{name}: is not there for rows that come and go: leave it out")
        chosen.check_tokens(vocabulary_of(self._decode))
        given = [input_ids] if isinstance(input_ids, list) else input_ids[None]
        prompt = integers("input_ids", given)[0] if len(input_ids) else np.zeros(0, np.int64)
        room = self._room - len(prompt) + 1
        count = chosen.count(len(prompt), room)
        if not len(prompt) or not 1 <= count <= room:
            raise ArgumentError(
                f"input_ids: expected one token at least, and with one new token at least no more than "
                f"max_length={self._room}, got {len(prompt)} and {count} new ones"
            )
        if not self.free:
            raise PipelineError(f"all {self._batch} rows of the cache are taken: wait until one is done")
        row = TextRow(prompt, chosen, count)
        self._waiting.append(row)
        return row

    def end(self, row: TextRow) -> None:
        """Gives up a text: its row is free."""
        row.reason = row.reason or "ended"
        self._waiting = [one for one in self._waiting if one is not row]
        self._rows = [None if one is row else one for one in self._rows]

    def step(self) -> list[tuple[TextRow, int]]:
        """One token of each text, and the first one of those that have started since the last step.

        Raises:
            PipelineError: another call has taken the cache since.
        """
        with self._held(self):
            found = self._go_on() if self._running() else []
            found += self._begin() if self._waiting else []
        for row, _ in found:
            if row.is_done:
                self.end(row)
        return found

    def _running(self) -> list[int]:
        """The rows that are taken."""
        return [number for number, row in enumerate(self._rows) if row is not None]

    def _go_on(self) -> list[tuple[TextRow, int]]:
        running = self._running()
        unused = self._filled - max(self._row(number).filled for number in running)
        if self._filled == self._room or 2 * unused > self._filled:
            self._cache.move(running, unused, self._filled, -unused)
            self._filled -= unused
        ids, padding = np.zeros((self._batch, 1), np.int64), np.full(self._batch, self._filled)
        for number in running:
            ids[number], padding[number] = self._row(number).tokens[-1], self._filled - self._row(number).filled
        logits = as_numpy(self._decode(ids, padding, np.arange(self._filled + 1)))
        self._filled += 1
        return [(self._row(number), self._row(number).take(logits[number])) for number in running]

    def _begin(self) -> list[tuple[TextRow, int]]:
        """Computes the prompts that wait, which end where the others do."""
        running = self._running()
        free = [number for number, row in enumerate(self._rows) if row is None][: len(self._waiting)]
        length = max(SHORTEST, *(len(row.prompt) for row in self._waiting))
        if length > self._filled:
            self._cache.move(running, 0, self._filled, length - self._filled)
            self._filled = length
        elif not running:
            self._filled = length
        starting = list(zip(free, self._waiting, strict=True))
        if self._join is not None and self._is_less_apart(length):
            found = [(row, self._joined(self._join(), number, row)) for number, row in starting]
        else:
            found = self._together(starting, length)
        for number, row in starting:
            self._rows[number] = row
        self._waiting = []
        return found

    def _is_less_apart(self, longest: int) -> bool:
        """Whether prompts that wait take less time one by one than as one of all rows."""
        apart = sum(max(len(row.prompt), _FREE_TOKENS) for row in self._waiting)
        return apart <= max(self._batch * longest, _FREE_TOKENS)

    def _joined(self, join: Executable, number: int, row: TextRow) -> int:
        """Computes a prompt alone, and puts it into its row so that it ends where the others do; its first token."""
        length = max(SHORTEST, len(row.prompt))
        ids = np.pad(row.prompt[None], ((0, 0), (length - len(row.prompt), 0)))
        logits = as_numpy(join(ids, np.array([length - len(row.prompt)])))
        staged = CacheRows(join.buffers, 1).copies([0], length)
        self._cache.put([number], staged, self._filled - length)
        return row.take(logits[0])

    def _together(self, starting: Sequence[tuple[int, TextRow]], length: int) -> list[tuple[TextRow, int]]:
        """Computes prompts as one of all rows, of which others are put back; their first tokens."""
        running = self._running()
        ids, padding = np.zeros((self._batch, length), np.int64), np.full(self._batch, length - 1)
        for number, row in starting:
            padding[number] = length - len(row.prompt)
            ids[number, padding[number] :] = row.prompt
        kept = self._cache.copies(running, length)
        try:
            logits = as_numpy(self._prefill(ids, padding))
        finally:
            self._cache.put(running, kept)
        self._cache.move([number for number, _ in starting], 0, length, self._filled - length)
        return [(row, row.take(logits[number])) for number, row in starting]

    def _row(self, number: int) -> TextRow:
        row = self._rows[number]
        assert row is not None
        return row
