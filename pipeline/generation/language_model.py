"""The loop of generation: a prompt, then a token at a time. Needs neither torch nor a compiler."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pipeline import locks
from pipeline.errors import ArgumentError, OptionError, PipelineError
from pipeline.generation.beams import Beams
from pipeline.generation.cache import CacheRows
from pipeline.generation.cached_text import CachedText
from pipeline.generation.drafts import Drafts, drafts_for
from pipeline.generation.generated_texts import GeneratedTexts
from pipeline.generation.inputs import ExpectedInputs, Inputs
from pipeline.generation.later_entry import LaterEntry
from pipeline.generation.prompt import Prompt, filled_up, integers
from pipeline.generation.rows import TextRows, vocabulary_of
from pipeline.generation.sampling import Draw, draw_for
from pipeline.generation.settings import Settings
from pipeline.generation.speculation import Speculation
from pipeline.generation.token_choice import TokenChoice
from pipeline.runtime.call.array_libraries import as_numpy, converted, library_of
from pipeline.runtime.call.array_library import ArrayLibrary
from pipeline.runtime.executable import Executable

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
        kind: in words, the models that have no `extend`, if it is one of them.
        tokenizer: the `tokenizer.json` that it was saved with.
    """

    kind = "models that go on from their states with one token after another"

    def __init__(
        self,
        prefill: Executable,
        decode: Executable,
        extend: Callable[[], Executable] | None,
        settings: Settings,
        tokenizer: bytes | None = None,
        join: Callable[[], Executable] | None = None,
        text: Callable[[], Executable] | None = None,
        expected: ExpectedInputs | None = None,
    ):
        """Takes the entries, see `pipeline.frontend.generation.decoder.DecoderEntries`, and what `Inputs` has."""
        self.prefill, self.decode, self.settings, self.tokenizer = prefill, decode, settings, tokenizer
        self._extend = None if extend is None else LaterEntry(extend, decode)
        self._join = None if join is None else LaterEntry(join, decode)
        self._prefill_text = None if text is None else LaterEntry(text, decode)
        self.batch, self.max_length = _sizes(decode)
        self._inputs = Inputs(prefill, self.batch, expected or ExpectedInputs())
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

        Raises:
            OptionError: the model takes one token after another.
        """
        if self._extend is None:
            raise OptionError(f"extend: is not there for {self.kind}: they have prefill and decode")
        with self._lock:
            return self._extend()

    @property
    def extends(self) -> bool:
        """Whether it takes several tokens more at once, which `reuse_cache`, chunks of prompts and drafts need."""
        return self._extend is not None

    @property
    def goes_back(self) -> bool:
        """Whether tokens may be taken back from the cache, which drafts need: layers that keep states cannot."""
        return self.extends and not self._cache.has_states

    @property
    def buffers(self) -> Mapping[str, Any]:
        """The cache, by name: `cache.keys_0` [batch * heads, width, max_length], `cache.values_0`, and so on.

        Where layers keep states these are `cache.conv_0_0` and `cache.recurrent_0_0`, [batch, ..].
        """
        return self.decode.buffers

    @property
    def vocabulary(self) -> int:
        """How many tokens there are."""
        return vocabulary_of(self.decode)

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
        input_ids: Any = None,
        attention_mask: Any = None,
        *,
        assistant_model: LanguageModel | None = None,
        streamer: Any = None,
        **settings: Any,
    ) -> Any:
        """The prompt and what follows, int64[rows, tokens], in the library of the prompt.

        With `return_dict_in_generate` it gives `GeneratedTexts`, of which that are the `sequences`.

        Args:
            input_ids: integers [rows, length], of torch or NumPy, or a list of lists.
            attention_mask: [rows, length], 0 for padding, which stands at the start of a row.
            assistant_model: a smaller model of the same tokens, which guesses at those that come next; this one looks
                at several guesses in one step, and gives the tokens that it gives without.
            streamer: as transformers' TextStreamer: its `put` is given the prompt and then the tokens of each step as
                soon as they are known, and `end` is called; not with beams.
            settings: see `Settings`; what is not given is that of `generation_config`, one of transformers' or a
                dictionary, and else that of the model's.

        Raises:
            ArgumentError: the prompt doesn't fit; says how.
            OptionError: a setting is unknown or out of range.
        """
        prompt, chosen, library = self._call(input_ids, attention_mask, settings)
        record = chosen.record()
        texts = self._texts(replace(prompt, record=record), chosen, library, assistant_model, streamer)

        def in_library(array: np.ndarray) -> Any:
            return array if library is None else converted(array, library)

        return in_library(texts) if record is None else GeneratedTexts.of(texts, record, in_library)

    def stream(
        self,
        input_ids: Any = None,
        attention_mask: Any = None,
        *,
        assistant_model: LanguageModel | None = None,
        **settings: Any,
    ) -> Iterator[np.ndarray]:
        """The tokens that follow a prompt, int64[rows], as soon as they are known; arguments as of `generate`."""
        prompt, chosen, library = self._call(input_ids, attention_mask, settings)
        return self._started(prompt, chosen, library, assistant_model)

    def rows(self) -> TextRows:
        """The rows of the cache, in which texts begin and end when they like; see `pipeline.generation.rows`.

        As a stream they cannot go on after another call has taken the cache.
        """
        if self._inputs.names:
            raise OptionError(f"rows: is not there for models that read {', '.join(self._inputs.names)}: use generate")
        sizes = self.batch, self.max_length
        with self._lock:
            rows = TextRows(self.prefill, self.decode, self._join, self._cache, sizes, self.settings, self._held)
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
        from pipeline.generation import files

        files.save(self, path, tokenizer, prepacked)

    def entries(self) -> dict[str, Executable]:
        """The executables by name, each of them made."""
        later = {"extend": self._extend, "join": self._join, "text": self._prefill_text}
        made = {name: entry() for name, entry in later.items() if entry is not None}
        return {"prefill": self.prefill, "decode": self.decode, **made}

    @property
    def expected_inputs(self) -> ExpectedInputs:
        """What the example that it was compiled with says of what it reads besides tokens."""
        return self._inputs.expected

    def _check(self, assistant: Any, settings: Settings, prompt: Prompt | None = None) -> None:
        """Raises `OptionError` where more is asked for than `extends` and `goes_back` say, or a prompt with images."""
        drafts = {"assistant_model": assistant, "prompt_lookup_num_tokens": settings.prompt_lookup_num_tokens}
        parts = {"prefill_chunk_size": settings.prefill_chunk_size, "reuse_cache": settings.reuse_cache}
        for name, given in (drafts | parts).items():
            if given and not self.extends:
                raise OptionError(f"{name}: is not there for {self.kind}: leave it out")
            if given and name in drafts and settings.keeps_steps:
                raise OptionError(f"{name}: output_scores and output_logits are not there for drafts: leave it out")
            if given and name in drafts and not self.goes_back:
                raise OptionError(f"{name}: is not there for models whose layers keep states: leave it out")
            if given and prompt is not None and prompt.inputs:
                raise OptionError(f"{name}: is not there beside {', '.join(prompt.inputs)}: leave it out")

    def _call(
        self, input_ids: Any, attention_mask: Any, given: dict[str, Any]
    ) -> tuple[Prompt, Settings, ArrayLibrary | None]:
        """What a caller gives: the prompt, each row as often as there are beams; settings; the prompt's library."""
        library, names = library_of(input_ids), self._inputs.names
        settings = self.settings.of_call({name: value for name, value in given.items() if name not in names}, library)
        self._check(None, settings)
        prompt = Prompt.of(input_ids, attention_mask, self.batch, settings.copies)
        inputs = {name: value for name, value in given.items() if name in names and value is not None}
        if inputs:
            prompt = self._inputs.beside(prompt, inputs, settings.copies)
            self._check(None, settings, prompt)
        return prompt, settings, library

    def _texts(
        self,
        prompt: Prompt,
        settings: Settings,
        library: ArrayLibrary | None,
        assistant: LanguageModel | None,
        streamer: Any,
    ) -> np.ndarray:
        """The prompts and what follows, int64[rows, tokens]; arguments as of `generate`."""

        def put(tokens: np.ndarray) -> None:
            if streamer is not None:
                streamer.put(tokens if library is None else converted(tokens, library))

        with self._lock:
            if streamer is None and settings.num_beams > 1 and not (assistant or settings.prompt_lookup_num_tokens):
                return self._search(prompt, settings, draw_for(library))
            stream = self._started(prompt, settings, library, assistant)
            steps = [prompt.given]
            put(steps[0])
            for tokens in stream:
                steps.append(tokens[:, None])
                put(tokens)
        if streamer is not None:
            streamer.end()
        return np.concatenate(steps, -1)

    def _started(
        self, prompt: Prompt, settings: Settings, library: ArrayLibrary | None, assistant: LanguageModel | None
    ) -> Iterator[np.ndarray]:
        """The tokens that follow a prompt, as `stream` gives them."""
        self._check(assistant, settings, prompt)
        draw = draw_for(library)
        drafts = drafts_for(self, assistant, settings, len(prompt.given), draw)
        if settings.num_beams > 1:
            raise OptionError("num_beams: which beam is the best is known at the end: use generate, or num_beams=1")
        count = self._count(prompt, settings)
        if drafts is not None:
            return self._speculate(prompt, Speculation(self, prompt, settings, count, draw), drafts)
        return self._stream(prompt, settings, count, draw)

    def _count(self, prompt: Prompt, settings: Settings) -> int:
        """How many tokens may follow a prompt."""
        settings.check_tokens(self.vocabulary)
        length = prompt.length
        room = self.max_length - length + 1
        count = settings.count(prompt.given.shape[1], room)
        if count > room or length > self.max_length:
            raise ArgumentError(
                f"input_ids: {length} tokens and {count} new ones are more than the cache has room for, "
                f"max_length={self.max_length}: compile the model with a larger one"
            )
        return count

    def _stream(self, prompt: Prompt, settings: Settings, count: int, draw: Draw) -> Iterator[np.ndarray]:
        for tokens, _ in self._chosen(prompt, settings, count, draw):
            yield tokens

    def _chosen(
        self, prompt: Prompt, settings: Settings, count: int, draw: Draw, times: int = 1
    ) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        """The tokens that follow, int64[rows], and where they are drawn how likely all were, f32[rows, vocabulary]."""
        rows, length = prompt.given.shape
        known = np.empty((rows, length + count), np.int64)
        known[:, :length] = prompt.given
        running = np.ones(rows, bool)
        choice = TokenChoice.of(prompt, settings, count)
        owner = object()
        tokens = prompt.ids
        for number in range(count):
            with self._held(owner, takes=number == 0):
                logits = self._step_logits(prompt, tokens, number, settings)
            before = known[:, : length + number]
            likely = choice.probabilities(logits, before, times) if settings.do_sample else None
            tokens = choice.likeliest(logits, before) if likely is None else draw.tokens(likely)
            if settings.eos_token_id:
                tokens = np.where(running, tokens, settings.filler)
                running = running & ~np.isin(tokens, settings.eos_token_id)
            known[:, length + number] = tokens
            running = running & ~choice.stopped(known[:, : length + number + 1])
            yield tokens, likely
            if not running.any():
                return

    def _speculate(self, prompt: Prompt, texts: Speculation, drafts: Drafts) -> Iterator[np.ndarray]:
        """As `_stream`; a step takes drafts, too, and keeps what is right."""
        owner, begin = object(), prompt.given.shape[1]
        place = begin
        while not texts.is_done:
            guesses = texts.drafted(drafts)
            with self._held(owner, takes=place == begin):
                drafts.judged(*texts.step(guesses))
                self.drafted, self.accepted = drafts.drafted, drafts.accepted
            for ready in range(place, texts.ready):
                yield texts.tokens(ready)
            place = texts.ready

    def first_logits(self, prompt: Prompt, settings: Settings) -> Any:
        """Takes a prompt into the cache; the logits after its last token, f32[batch, vocabulary]."""
        return self._logits(prompt, prompt.ids, 0, settings)

    def further_logits(self, prompt: Prompt, first: int, ids: np.ndarray) -> Any:
        """Puts tokens, int64[batch, count], to the slots from `first` on; the logits after each of them."""
        return self._run(first, ids, prompt.padding, self._slots[: ids.shape[1]])

    def guess(
        self, ids: np.ndarray, mask: np.ndarray, count: int, settings: Settings, draw: Draw
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Tokens that follow prompts, int64[rows, count], and the probabilities that drawn ones had.

        These are f32[rows, count, vocabulary]; there may be fewer than `count`, where all rows end. As transformers'
        assistants do, it applies temperature, `top_k` and their like twice.
        """
        with self._lock:
            chosen = list(
                self._chosen(Prompt.of(ids, mask, self.batch, settings.copies), settings, count, draw, times=2)
            )
        tokens = np.stack([one for one, _ in chosen], 1)
        likely = [one for _, one in chosen if one is not None]
        return tokens, np.stack(likely, 1) if likely else None

    def continued(self, prompt: Prompt, rows: Sequence[int]) -> int:
        """How many slots have what a prompt has there, in some rows, which are moved if their padding is another."""
        found, moves = self._text.shared(prompt, rows)
        if found < _FEWEST or self._cache.has_states and not self._text.goes_on(prompt, rows, found):
            return 0
        for move in moves:
            self._cache.move([move.row], move.begin, move.end, move.by)
        self._text.align(prompt, rows, found)
        return found

    def _search(self, prompt: Prompt, settings: Settings, draw: Draw) -> np.ndarray:
        """The prompts and the best that follows each, by beams."""
        settings.without_functions("beams", but=("logits_processor", "prefix_allowed_tokens_fn"))
        self._owner, rows, tokens = object(), len(prompt.given), prompt.ids
        count = self._count(prompt, settings)
        beams = Beams(prompt, count, settings, draw)
        if beams.is_done:
            return prompt.given[np.arange(rows) % settings.num_beams < settings.num_return_sequences]
        for number in range(count):
            tokens, sources = beams.advance(self._step_logits(prompt, tokens, number, settings))
            if beams.is_done:
                break
            self._cache.reorder(sources.tolist(), prompt.length + number)
            self._text.reorder(sources)
        return beams.texts()

    @contextmanager
    def _held(self, owner: object, takes: bool = False) -> Iterator[None]:
        """The cache, for the one who `takes` it or has taken it last."""
        with self._lock:
            if takes:
                self._owner = owner
            elif self._owner is not owner:
                raise PipelineError("this stream cannot go on: another call has taken the cache since")
            yield

    def _step_logits(self, prompt: Prompt, tokens: np.ndarray, number: int, settings: Settings) -> np.ndarray:
        """As `_logits`, of the rows that a caller gives, f32[rows, vocabulary]; they are kept if that is asked for."""
        logits = as_numpy(self._logits(prompt, tokens, number, settings))[: len(prompt.given)]
        if prompt.record is not None:
            prompt.record.add_logits(logits)
        return logits

    def _logits(self, prompt: Prompt, tokens: np.ndarray, number: int, settings: Settings) -> Any:
        """The logits after step `number`, f32[batch, vocabulary]: the prompt is the first."""
        if number:
            ids = filled_up(tokens, self.batch)[:, None]
            return self._run(prompt.length + number - 1, ids, prompt.padding, self._slots[:1])[:, -1]
        self.reused = self.continued(prompt, range(self.batch)) if settings.reuse_cache else 0
        size = settings.prefill_chunk_size or prompt.length
        for begin in range(self.reused, prompt.length, size):
            ids = prompt.ids[:, begin : begin + size]
            kept = self._slots[max(ids.shape[1] - _FEWEST, 0) : ids.shape[1]]
            logits = self._run(begin, ids, prompt.padding, kept, prompt.inputs)
        return logits[:, -1]

    def _run(
        self,
        first: int,
        ids: np.ndarray,
        padding: np.ndarray,
        kept: np.ndarray,
        inputs: Mapping[str, np.ndarray] | None = None,
    ) -> Any:
        """Puts tokens, int64[batch, count], to the slots from `first` on; the logits after the last, or those kept."""
        self._text.cut(first, padding)
        count = ids.shape[1]
        if inputs:
            logits = self.prefill(ids, padding, inputs)[:, None]
            ids = np.full_like(ids, -1)  # which no prompt goes on from: an image is no text
        elif first == 0:
            prefill = self.prefill if self._prefill_text is None else self._prefill_text()
            logits = prefill(ids, padding)[:, None]
        elif count < _FEWEST:
            logits = self.decode(ids, padding, self._slots[: first + count])[:, None]
        else:
            room = 0 if self._cache.has_states else self.max_length - first - count
            whole = np.pad(ids, ((0, 0), (0, min(_missing(count), room))))  # what is behind is overwritten
            rows = np.pad(kept, (0, _missing(len(kept))), "edge")
            logits = self.extend(whole, padding, self._slots[:first], rows)[:, : len(kept)]
        self._text.append(ids)
        return logits


def _sizes(decode: Executable) -> tuple[int, int]:
    """How many rows and how many slots an entry is for."""
    types = {argument.name: argument.type for argument in decode.signature.arguments}
    ids, slots = types["input_ids"], types["slots"]
    assert ids is not None and slots is not None
    most = {symbol: high for symbol, _, high in decode.signature.ranges}
    (filled,) = slots.shape
    return int(ids.shape[0]), most[filled] if isinstance(filled, str) else filled


def _missing(count: int) -> int:
    """How many rows make a product of `count` rows one that is as fast or faster."""
    return -count % _ROWS if count > _FEWEST else 0
