"""The loop of generation: a prompt, then a token at a time. Needs neither torch nor a compiler."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from pipeline import locks
from pipeline.errors import ArgumentError, ArtifactError, OptionError, PipelineError
from pipeline.generation.beams import Beams
from pipeline.generation.cache import CacheRows
from pipeline.generation.prompt import Prompt, filled_up, integers
from pipeline.generation.sampling import Draw, next_tokens, numpy_draw, torch_draw
from pipeline.generation.settings import Settings
from pipeline.runtime.bundle import Bundle
from pipeline.runtime.call.array_libraries import as_numpy, converted, library_of
from pipeline.runtime.executable import Executable

#: The names of files in a bundle.
_SETTINGS, _TOKENIZER = "generation.json", "tokenizer.json"


class LanguageModel:
    """Generates; `pipeline.generation.compile` and `load` make it.

    There is one cache: calls of `generate` of several threads wait for each other, and a `stream` ends with an error
    when it is gone on with after another call has begun.

    Attributes:
        prefill: takes a prompt into the cache: (int64[batch, length], padding int64[batch]) -> f32[batch, vocabulary].
        decode: takes one token more: (int64[batch, 1], int64[batch], int64[filled], the numbers from 0) -> likewise.
        settings: what `generate` goes by where it is not told otherwise.
        batch: how many rows the cache has.
        max_length: how many tokens of a row it has room for.
        tokenizer: the `tokenizer.json` that it was saved with.
    """

    def __init__(self, prefill: Executable, decode: Executable, settings: Settings, tokenizer: bytes | None = None):
        self.prefill, self.decode, self.settings, self.tokenizer = prefill, decode, settings, tokenizer
        keys = prefill.buffers["cache.keys_0"]
        argument = decode.signature.arguments[0].type
        assert argument is not None
        self.batch, self.max_length = int(argument.shape[0]), int(keys.shape[-1])
        self._cache = CacheRows(self.buffers, self.batch)
        self._slots = np.arange(self.max_length)
        self._lock = locks.recursive_lock()
        self._owner: object = None

    def __repr__(self) -> str:
        return f"<LanguageModel: {self.batch} rows of {self.max_length} tokens, {self.cache_bytes} bytes of cache>"

    @property
    def buffers(self) -> Mapping[str, Any]:
        """The cache, by name: `cache.keys_0` [batch * heads, width, max_length], `cache.values_0`, and so on."""
        return self.decode.buffers

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

    def generate(self, input_ids: Any, attention_mask: Any = None, **settings: Any) -> Any:
        """The prompt and what follows, int64[rows, tokens], in the library of the prompt.

        Args:
            input_ids: integers [rows, length], of torch or NumPy, or a list of lists.
            attention_mask: [rows, length], 0 for padding, which stands at the start of a row.
            settings: see `Settings`; what is not given is that of the model's generation config.

        Raises:
            ArgumentError: the prompt doesn't fit; says how.
            OptionError: a setting is unknown or out of range.
        """
        chosen = self.settings.but(**settings)
        with self._lock:
            if chosen.num_beams > 1:
                joined = self._search(Prompt.of(input_ids, attention_mask, self.batch, chosen.num_beams), chosen)
            else:
                steps = [tokens[:, None] for tokens in self.stream(input_ids, attention_mask, **settings)]
                joined = np.concatenate([integers("input_ids", input_ids), *steps], -1)
        library = library_of(input_ids)
        return joined if library is None else converted(joined, library)

    def stream(self, input_ids: Any, attention_mask: Any = None, **settings: Any) -> Iterator[np.ndarray]:
        """The tokens that follow a prompt, int64[rows], as soon as they are known; arguments as of `generate`."""
        chosen = self.settings.but(**settings)
        if chosen.num_beams > 1:
            raise OptionError("num_beams: which beam is the best is known at the end: use generate, or num_beams=1")
        prompt = Prompt.of(input_ids, attention_mask, self.batch)
        count = self._count(prompt, chosen)
        is_torchs = "torch" in sys.modules and isinstance(input_ids, sys.modules["torch"].Tensor)
        return self._stream(prompt, chosen, count, torch_draw if is_torchs else numpy_draw())

    def reset(self) -> None:
        """Sets the cache to zeros. No call needs that: it leaves nothing of a text in memory."""
        with self._lock:
            self._owner = None
            self._cache.reset()

    def save(self, path: str | Path, *, tokenizer: str | Path | None = None, prepacked: bool = False) -> None:
        """Writes both entries, the weights once, and the settings to one file; `pipeline.generation.load` reads it.

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
        Bundle({"prefill": self.prefill, "decode": self.decode}, files, self.buffers).save(path, prepacked=prepacked)

    @staticmethod
    def load(path: str | Path) -> LanguageModel:
        """See `pipeline.generation.load`."""
        bundle = Bundle.load(path)
        if bundle.entries.keys() != {"prefill", "decode"} or _SETTINGS not in bundle.files:
            raise ArtifactError(f"{path}: is no language model; LanguageModel.save makes those")
        settings = Settings().but(**json.loads(bundle.files[_SETTINGS]))
        return LanguageModel(
            bundle.entries["prefill"], bundle.entries["decode"], settings, bundle.files.get(_TOKENIZER)
        )

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
                logits = as_numpy(self._logits(prompt, tokens, number))
            tokens = next_tokens(logits[:rows], known[:, : length + number], settings, draw)
            if settings.eos_token_id:
                tokens = np.where(running, tokens, settings.filler)
                running = running & ~np.isin(tokens, settings.eos_token_id)
            known[:, length + number] = tokens
            yield tokens
            if not running.any():
                return

    def _search(self, prompt: Prompt, settings: Settings) -> np.ndarray:
        """The prompts and the best that follows each, by beams."""
        self._owner, rows, tokens = object(), len(prompt.given), prompt.ids
        count = self._count(prompt, settings)
        beams = Beams(prompt.given, count, settings)
        if beams.is_done:
            return prompt.given[:: settings.num_beams]
        for number in range(count):
            tokens, sources = beams.advance(as_numpy(self._logits(prompt, tokens, number))[:rows])
            if beams.is_done:
                break
            self._cache.reorder(sources.tolist(), prompt.length + number)
        return beams.texts()

    def _check_owner(self, owner: object) -> None:
        if self._owner is not owner:
            raise PipelineError("this stream cannot go on: another call has taken the cache since")

    def _logits(self, prompt: Prompt, tokens: np.ndarray, number: int) -> Any:
        """The logits after step `number`: the prompt is the first."""
        if number == 0:
            return self.prefill(prompt.ids, prompt.padding)
        ids = filled_up(tokens, self.batch)[:, None]
        return self.decode(ids, prompt.padding, self._slots[: prompt.length + number])
