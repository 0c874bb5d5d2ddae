"""The loop of generation: a prompt, then a token at a time. Needs neither torch nor a compiler."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipeline import locks
from pipeline.errors import ArgumentError, ArtifactError, PipelineError
from pipeline.generation.sampling import Draw, next_tokens, numpy_draw, torch_draw
from pipeline.generation.settings import Settings
from pipeline.runtime.bundle import Bundle
from pipeline.runtime.call.array_libraries import as_numpy, converted, library_of
from pipeline.runtime.executable import Executable

#: Sizes that torch.export takes for symbolic start here, so a shorter prompt gets padding.
_SHORTEST = 2

#: The names of files in a bundle.
_SETTINGS, _TOKENIZER = "generation.json", "tokenizer.json"


@dataclass(frozen=True)
class _Prompt:
    """A prompt as the code takes it: padded to the rows of the cache and to the shortest length.

    Attributes:
        given: the caller's tokens, int64[rows, length].
        ids: int64[batch, length].
        padding: how many tokens at the start of a row are padding, int64[batch].
    """

    given: np.ndarray
    ids: np.ndarray
    padding: np.ndarray


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
        return sum(as_numpy(buffer).nbytes for buffer in self.buffers.values())

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
        with self._lock:
            steps = [tokens[:, None] for tokens in self.stream(input_ids, attention_mask, **settings)]
        joined = np.concatenate([_integers("input_ids", input_ids), *steps], -1)
        library = library_of(input_ids)
        return joined if library is None else converted(joined, library)

    def stream(self, input_ids: Any, attention_mask: Any = None, **settings: Any) -> Iterator[np.ndarray]:
        """The tokens that follow a prompt, int64[rows], as soon as they are known; arguments as of `generate`."""
        prompt, chosen = self._prompt(input_ids, attention_mask), self.settings.but(**settings)
        count = self._count(prompt, chosen)
        is_torchs = "torch" in sys.modules and isinstance(input_ids, sys.modules["torch"].Tensor)
        return self._stream(prompt, chosen, count, torch_draw if is_torchs else numpy_draw())

    def reset(self) -> None:
        """Sets the cache to zeros. No call needs that: it leaves nothing of a text in memory."""
        with self._lock:
            self._owner = None
            for buffer in self.buffers.values():
                as_numpy(buffer)[...] = 0

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

    def _prompt(self, input_ids: Any, attention_mask: Any) -> _Prompt:
        given = _integers("input_ids", input_ids)
        rows, length = given.shape
        if not 1 <= rows <= self.batch:
            raise ArgumentError(f"input_ids: has {rows} rows, the model was compiled for batch={self.batch} at most")
        if length < 1:
            raise ArgumentError("input_ids: is empty; give it the token that texts begin with")
        padding = _padding(given, attention_mask)
        short = max(_SHORTEST - length, 0)
        rest = self.batch - rows  # rows that nobody asked for go on from the first one
        ids = np.concatenate([given, np.repeat(given[:1], rest, 0)])
        padding = np.concatenate([padding, np.repeat(padding[:1], rest)])
        return _Prompt(given, np.pad(ids, ((0, 0), (short, 0))), padding + short)

    def _count(self, prompt: _Prompt, settings: Settings) -> int:
        """How many tokens may follow a prompt."""
        length = prompt.ids.shape[1]
        room = self.max_length - length + 1
        count = max(room, 0) if settings.max_new_tokens is None else settings.max_new_tokens
        if count > room or length > self.max_length:
            raise ArgumentError(
                f"input_ids: {length} tokens and {count} new ones are more than the cache has room for, "
                f"max_length={self.max_length}: compile the model with a larger one"
            )
        return count

    def _stream(self, prompt: _Prompt, settings: Settings, count: int, draw: Draw) -> Iterator[np.ndarray]:
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

    def _check_owner(self, owner: object) -> None:
        if self._owner is not owner:
            raise PipelineError("this stream cannot go on: another call has taken the cache since")

    def _logits(self, prompt: _Prompt, tokens: np.ndarray, number: int) -> Any:
        """The logits after step `number`: the prompt is the first."""
        if number == 0:
            return self.prefill(prompt.ids, prompt.padding)
        missing = self.batch - len(tokens)
        ids = np.concatenate([tokens, np.repeat(tokens[:1], missing)])[:, None]
        return self.decode(ids, prompt.padding, self._slots[: prompt.ids.shape[1] + number])


def _integers(name: str, given: Any) -> np.ndarray:
    """A matrix of integers of any library, or of lists."""
    try:
        array = np.asarray(given) if library_of(given) is None else as_numpy(given)
    except ValueError:
        raise ArgumentError(f"{name}: expected rows of equal length; pad them at their start") from None
    if array.ndim != 2 or array.dtype.kind not in "iub":
        raise ArgumentError(f"{name}: expected integers [rows, length], got {array.dtype}{list(array.shape)}")
    return array.astype(np.int64)


def _padding(ids: np.ndarray, attention_mask: Any) -> np.ndarray:
    """How many tokens at the start of each row are padding."""
    if attention_mask is None:
        return np.zeros(len(ids), np.int64)
    mask = _integers("attention_mask", attention_mask)
    if mask.shape != ids.shape:
        raise ArgumentError(
            f"attention_mask: expected the shape of input_ids, {list(ids.shape)}, got {list(mask.shape)}"
        )
    padding = mask.argmax(-1)
    if not (mask == (np.arange(ids.shape[1]) >= padding[:, None])).all():
        raise ArgumentError("attention_mask: expected ones, with zeros at the start of rows alone: pad on the left")
    return padding
