"""The loop of generation: a prompt, then a token at a time. Needs neither torch nor a compiler."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from pipeline import locks
from pipeline.errors import ArgumentError, ArtifactError, OptionError, PipelineError
from pipeline.generation.beams import Beams
from pipeline.generation.cache import CacheRows
from pipeline.generation.cached_text import CachedText
from pipeline.generation.drafts import Drafts, drafts_for
from pipeline.generation.prompt import Prompt, filled_up, integers
from pipeline.generation.rows import TextRows
from pipeline.generation.sampling import Draw, likeliest, next_tokens, numpy_draw, torch_draw
from pipeline.generation.settings import Settings
from pipeline.runtime.bundle import Bundle
from pipeline.runtime.call.array_libraries import as_numpy, converted, library_of
from pipeline.runtime.executable import Executable

#: The names of files in a bundle.
_SETTINGS, _TOKENIZER = "generation.json", "tokenizer.json"

#: The executables in a bundle.
_ENTRIES = {"prefill", "decode", "extend"}

#: The one that models with an encoder don't have.
_EXTEND = "extend"

#: How many slots have to be filled, and how many tokens come and how many logits go, where `extend` is called.
_FEWEST = 2

#: How many rows of a product are computed at once: so many take less time than three.
_ROWS = 8


class LanguageModel:
    """Generates; `pipeline.generation.compile` and `load` make it.

    There is one cache: calls of `generate` of several threads wait for each other, and a `stream` ends with an error
    when it is gone on with after another call has begun.

    Attributes:
        prefill: takes a prompt into the cache: (int64[batch, length], padding int64[batch]) -> f32[batch, vocabulary].
        decode: takes one token more: (int64[batch, 1], int64[batch], int64[filled], the numbers from 0) -> likewise.
        settings: what `generate` goes by where it is not told otherwise.
        reused: how many slots of the cache the last prompt found filled with its own tokens, see `Settings`.
        drafted, accepted: how many tokens of drafts the last call looked at, and how many of them it gave.
        batch: how many rows the cache has.
        max_length: how many tokens of a row it has room for.
        tokenizer: the `tokenizer.json` that it was saved with.
    """

    def __init__(
        self,
        prefill: Executable,
        decode: Executable,
        extend: Callable[[], Executable],
        settings: Settings,
        tokenizer: bytes | None = None,
    ):
        """Takes the entries, of which `extend` is made when it is needed."""
        self.prefill, self.decode, self.settings, self.tokenizer = prefill, decode, settings, tokenizer
        self._make_extend = extend
        self._extend: Executable | None = None
        keys = prefill.buffers["cache.keys_0"]
        argument = decode.signature.arguments[0].type
        assert argument is not None
        self.batch, self.max_length = int(argument.shape[0]), int(keys.shape[-1])
        self._cache = CacheRows(self.buffers, self.batch)
        self._text = CachedText(self.batch, self.max_length)
        self.reused = self.drafted = self.accepted = 0
        self._slots = np.arange(self.max_length)
        self._lock = locks.recursive_lock()
        self._owner: object = None

    def __repr__(self) -> str:
        return f"<LanguageModel: {self.batch} rows of {self.max_length} tokens, {self.cache_bytes} bytes of cache>"

    @property
    def extend(self) -> Executable:
        """Takes several tokens more: (int64[batch, length], padding int64[batch], int64[filled before], int64[kept]).

        It gives logits after the tokens `kept`, f32[batch, kept, vocabulary]; all sizes are 2 at least. It is compiled
        when it is first asked for: by a prompt that goes on from the cache or comes in chunks, by drafts, or by `save`;
        it begins with as many threads as `decode` has then.
        """
        with self._lock:
            if self._extend is None:
                self._extend = self._make_extend()
                self._extend.num_threads = self.decode.num_threads
            return self._extend

    @property
    def buffers(self) -> Mapping[str, Any]:
        """The cache, by name: `cache.keys_0` [batch * heads, width, max_length], `cache.values_0`, and so on."""
        return self.decode.buffers

    @property
    def vocabulary(self) -> int:
        """How many tokens there are."""
        logits = self.decode.signature.results[0].type
        assert logits is not None
        return int(logits.shape[-1])

    @property
    def cache_bytes(self) -> int:
        """How many bytes the cache takes."""
        return self._cache.nbytes

    @property
    def prepared_bytes(self) -> int:
        """How many bytes that take which both entries have computed of the weights, to read these in their order."""
        memory = {
            id(tensor.memory): tensor.memory for entry in (self.prefill, self.decode) for tensor in entry.prepared
        }
        return sum(arena.size for arena in memory.values())

    def first_new(self, input_ids: Any) -> int:
        """How many of the tokens that `generate` gives for a prompt stand in front of those that follow."""
        return integers("input_ids", input_ids).shape[1]

    def generate(
        self,
        input_ids: Any,
        attention_mask: Any = None,
        *,
        assistant_model: LanguageModel | None = None,
        **settings: Any,
    ) -> Any:
        """The prompt and what follows, int64[rows, tokens], in the library of the prompt.

        Args:
            input_ids: integers [rows, length], of torch or NumPy, or a list of lists.
            attention_mask: [rows, length], 0 for padding, which stands at the start of a row.
            assistant_model: a smaller model of the same tokens, which guesses at those that come next; this one looks
                at several guesses in one step, and gives the tokens that it gives without.
            settings: see `Settings`; what is not given is that of the model's generation config.

        Raises:
            ArgumentError: the prompt doesn't fit; says how.
            OptionError: a setting is unknown or out of range.
        """
        chosen = self.settings.but(**settings)
        with self._lock:
            if chosen.num_beams > 1 and assistant_model is None and not chosen.prompt_lookup_num_tokens:
                joined = self._search(self._prompt(input_ids, attention_mask, chosen), chosen)
            else:
                stream = self.stream(input_ids, attention_mask, assistant_model=assistant_model, **settings)
                steps = [tokens[:, None] for tokens in stream]
                joined = np.concatenate([self._prompt(input_ids, attention_mask, chosen).given, *steps], -1)
        library = library_of(input_ids)
        return joined if library is None else converted(joined, library)

    def stream(
        self,
        input_ids: Any,
        attention_mask: Any = None,
        *,
        assistant_model: LanguageModel | None = None,
        **settings: Any,
    ) -> Iterator[np.ndarray]:
        """The tokens that follow a prompt, int64[rows], as soon as they are known; arguments as of `generate`."""
        chosen = self.settings.but(**settings)
        drafts = drafts_for(self, assistant_model, chosen, len(integers("input_ids", input_ids)))
        if chosen.num_beams > 1:
            raise OptionError("num_beams: which beam is the best is known at the end: use generate, or num_beams=1")
        prompt = self._prompt(input_ids, attention_mask, chosen)
        count = self._count(prompt, chosen)
        if drafts is not None:
            return self._speculate(prompt, chosen, count, drafts)
        is_torchs = "torch" in sys.modules and isinstance(input_ids, sys.modules["torch"].Tensor)
        return self._stream(prompt, chosen, count, torch_draw if is_torchs else numpy_draw())

    def rows(self) -> TextRows:
        """The rows of the cache, in which texts begin and end when they like; see `pipeline.generation.rows`.

        As a stream they cannot go on after another call has taken the cache.
        """
        sizes = self.batch, self.max_length
        with self._lock:
            rows = TextRows(self.prefill, self.decode, self._cache, sizes, self.settings, self._held)
            self._owner = rows
            self._text.cut(0, np.zeros(self.batch, np.int64))
        return rows

    def reset(self) -> None:
        """Sets the cache to zeros. No call needs that: it leaves nothing of a text in memory."""
        with self._lock:
            self._owner = None
            self._text.cut(0, np.zeros(self.batch, np.int64))
            self._cache.reset()

    def save(self, path: str | Path, *, tokenizer: str | Path | None = None, prepacked: bool = False) -> None:
        """Writes the entries, the weights once, and the settings to one file; `pipeline.generation.load` reads it.

        Nothing of what is in the cache is written.

        Args:
            tokenizer: the `tokenizer.json` of the tokenizers package, which is to be in the file, too.
            prepacked: see `Executable.save`: of weights in bytes the file has the bytes alone.

        Raises:
            ArtifactError: a file cannot be read or written.
        """
        files = {_SETTINGS: json.dumps(asdict(self.settings)).encode()}
        if tokenizer is not None:
            try:
                files[_TOKENIZER] = Path(tokenizer).read_bytes()
            except OSError as error:
                raise ArtifactError(f"{tokenizer}: cannot be read: {error}") from error
        elif self.tokenizer is not None:
            files[_TOKENIZER] = self.tokenizer
        entries = self._entries()
        buffers = {name for entry in entries.values() for name in entry.buffers}
        Bundle(entries, files, buffers).save(path, prepacked=prepacked)

    @staticmethod
    def load(path: str | Path) -> LanguageModel:
        """See `pipeline.generation.load`."""
        bundle = Bundle.load(path)
        entries = bundle.entries
        if not _ENTRIES - {_EXTEND} <= entries.keys() <= _ENTRIES or _SETTINGS not in bundle.files:
            raise ArtifactError(f"{path}: is no language model; LanguageModel.save makes those")
        settings = Settings().but(**json.loads(bundle.files[_SETTINGS]))
        tokenizer = bundle.files.get(_TOKENIZER)
        if _EXTEND in entries:
            return LanguageModel(entries["prefill"], entries["decode"], lambda: entries[_EXTEND], settings, tokenizer)
        from pipeline.generation.encoder_decoder import EncoderDecoderModel

        return EncoderDecoderModel(entries["prefill"], entries["decode"], settings, tokenizer)

    def _entries(self) -> dict[str, Executable]:
        """What a file has."""
        return {"prefill": self.prefill, "decode": self.decode, _EXTEND: self.extend}

    def _prompt(self, input_ids: Any, attention_mask: Any, settings: Settings) -> Prompt:
        """What a caller gives; each row as often as there are beams."""
        return Prompt.of(input_ids, attention_mask, self.batch, settings.num_beams)

    def _count(self, prompt: Prompt, settings: Settings) -> int:
        """How many tokens may follow a prompt."""
        length = prompt.length
        room = self.max_length - length + 1
        count = max(room, 0) if settings.max_new_tokens is None else settings.max_new_tokens
        if count > room or length > self.max_length:
            raise ArgumentError(
                f"input_ids: {length} tokens and {count} new ones are more than the cache has room for, "
                f"max_length={self.max_length}: compile the model with a larger one"
            )
        return count

    def _stream(self, prompt: Prompt, settings: Settings, count: int, draw: Draw) -> Iterator[np.ndarray]:
        rows, length = prompt.given.shape
        known = np.empty((rows, length + count), np.int64)
        known[:, :length] = prompt.given
        running = np.ones(rows, bool)
        owner = object()
        tokens = prompt.ids
        for number in range(count):
            with self._lock:
                if number == 0:
                    self._owner = owner
                self._check_owner(owner)
                logits = as_numpy(self._logits(prompt, tokens, number, settings))
            tokens = next_tokens(logits[:rows], known[:, : length + number], settings, draw)
            if settings.eos_token_id:
                tokens = np.where(running, tokens, settings.filler)
                running = running & ~np.isin(tokens, settings.eos_token_id)
            known[:, length + number] = tokens
            yield tokens
            if not running.any():
                return

    def _speculate(self, prompt: Prompt, settings: Settings, count: int, drafts: Drafts) -> Iterator[np.ndarray]:
        """As `_stream` for one row and the likeliest tokens; a step takes a draft, too, and keeps what is right."""
        length = prompt.given.shape[1]
        begin = int(prompt.padding[0]) - (prompt.length - length)
        known = np.concatenate([prompt.given, np.empty((1, count), np.int64)], 1)
        owner, end, draft = object(), length, known[0, :0]
        while end < known.shape[1]:
            with self._lock:
                if end == length:
                    self._owner = owner
                self._check_owner(owner)
                if end == length:
                    logits = self._logits(prompt, prompt.ids, 0, settings)[:, None]
                else:
                    logits = self._looked_at(prompt, np.append(known[0, end - 1], draft), end - length)
                right = _accept(as_numpy(logits)[0], draft, known, end, settings)
                drafts.judged(len(draft), right)
                self.drafted, self.accepted = drafts.drafted, drafts.accepted
            for token in known[0, end : end + right + 1].tolist():
                yield np.array([token])
                if token in settings.eos_token_id:
                    return
            end += right + 1
            draft = drafts.after(known[0, begin:end], known.shape[1] - end - 1)

    def _looked_at(self, prompt: Prompt, tokens: np.ndarray, number: int) -> Any:
        """The logits after each of the tokens from the one that step `number` takes, [batch, count, vocabulary]."""
        ids = np.repeat(tokens[None], self.batch, 0)
        return self._run(prompt.length + number - 1, ids, prompt.padding, self._slots[: len(tokens)])

    def _search(self, prompt: Prompt, settings: Settings) -> np.ndarray:
        """The prompts and the best that follows each, by beams."""
        self._owner, rows, tokens = object(), len(prompt.given), prompt.ids
        count = self._count(prompt, settings)
        beams = Beams(prompt.given, count, settings)
        if beams.is_done:
            return prompt.given[:: settings.num_beams]
        for number in range(count):
            tokens, sources = beams.advance(as_numpy(self._logits(prompt, tokens, number, settings))[:rows])
            if beams.is_done:
                break
            self._cache.reorder(sources.tolist(), prompt.length + number)
            self._text.reorder(sources)
        return beams.texts()

    @contextmanager
    def _held(self, owner: object) -> Iterator[None]:
        """The cache, for the one who has taken it last."""
        with self._lock:
            self._check_owner(owner)
            yield

    def _check_owner(self, owner: object) -> None:
        if self._owner is not owner:
            raise PipelineError("this stream cannot go on: another call has taken the cache since")

    def _logits(self, prompt: Prompt, tokens: np.ndarray, number: int, settings: Settings) -> Any:
        """The logits after step `number`, f32[batch, vocabulary]: the prompt is the first."""
        if number:
            ids = filled_up(tokens, self.batch)[:, None]
            return self._run(prompt.length + number - 1, ids, prompt.padding, self._slots[:1])[:, -1]
        first = self._text.shared(prompt) if settings.reuse_cache else 0
        self.reused = first if first >= _FEWEST else 0
        size = settings.prefill_chunk_size or prompt.length
        for begin in range(self.reused, prompt.length, size):
            ids = prompt.ids[:, begin : begin + size]
            kept = self._slots[max(ids.shape[1] - _FEWEST, 0) : ids.shape[1]]
            logits = self._run(begin, ids, prompt.padding, kept)
        return logits[:, -1]

    def _run(self, first: int, ids: np.ndarray, padding: np.ndarray, kept: np.ndarray) -> Any:
        """Puts tokens, int64[batch, count], to the slots from `first` on; the logits after the last, or those kept."""
        self._text.cut(first, padding)
        count = ids.shape[1]
        if first == 0:
            logits = self.prefill(ids, padding)[:, None]
        elif count < _FEWEST:
            logits = self.decode(ids, padding, self._slots[: first + count])[:, None]
        else:
            room = self.max_length - first - count
            whole = np.pad(ids, ((0, 0), (0, min(_missing(count), room))))  # what is behind is overwritten
            rows = np.pad(kept, (0, _missing(len(kept))), "edge")
            logits = self.extend(whole, padding, self._slots[:first], rows)[:, : len(kept)]
        self._text.append(ids)
        return logits


def _missing(count: int) -> int:
    """How many rows make a product of `count` rows one that is as fast or faster."""
    return -count % _ROWS if count > _FEWEST else 0


def _accept(logits: np.ndarray, draft: np.ndarray, known: np.ndarray, end: int, settings: Settings) -> int:
    """Puts what follows known[1, :end] there, as far as a draft is right, and one token more; how much was right."""
    for place, row in enumerate(logits):
        known[:, end + place] = likeliest(row[None], known[:, : end + place], settings)
        if place == len(draft) or known[0, end + place] != draft[place]:
            break
    return place
