"""Whisper: texts begin with tokens for a language and what is to be done, and are given without these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pipeline.errors import OptionError
from pipeline.generation.encoder_decoder import EncoderDecoderModel, SourcePrompt
from pipeline.generation.prompt import Prompt
from pipeline.generation.settings import Settings
from pipeline.runtime.call.array_libraries import as_numpy
from pipeline.runtime.call.array_library import ArrayLibrary
from pipeline.runtime.executable import Executable

#: What is done where nothing else is asked for.
_TRANSCRIBE = "transcribe"


@dataclass(frozen=True)
class SpeechTokens:
    """What a generation config of Whisper says of how texts begin.

    Attributes:
        languages: the tokens of languages, by all names that callers have for these; none of a model of English alone.
        tasks: the tokens of `transcribe` and `translate`.
        last: the token behind these that says that no times come; None for none.
        forced: what stands behind the first token where no call says more, of an old config; None for the language.
        language, task: what a call has that says nothing.
    """

    languages: Mapping[str, int]
    tasks: Mapping[str, int]
    last: int | None
    forced: Sequence[int | None]
    language: str | None
    task: str | None

    def to_json(self) -> dict[str, Any]:
        """What the class makes of it, by name."""
        return asdict(self)

    def language_of(self, name: Any) -> int:
        """The token of a language.

        Raises:
            OptionError: the model has none for it.
        """
        found = self.languages.get(str(name).lower())
        if found is None:
            known = ", ".join(sorted(language for language in self.languages if language.isalpha()))
            raise OptionError(f"language: expected one of {known or 'none: the model has one alone'}, got {name!r}")
        return found

    def task_of(self, name: str) -> int:
        """The token of a task.

        Raises:
            OptionError: the model has none for it.
        """
        if name not in self.tasks:
            known = ", ".join(self.tasks)
            raise OptionError(f"task: expected one of {known or 'none: the model has one alone'}, got {name!r}")
        return self.tasks[name]


class SpeechModel(EncoderDecoderModel):
    """Whisper, for sounds as long as the example; `pipeline.generation.compile` and `load` make it.

    `generate` takes `language` and `task`, as transformers' does: without a language it is the likeliest of each row.
    It gives int64[rows, tokens], what follows, without the tokens that texts begin and end with; shorter rows have
    `pad_token_id` behind. No times come: `return_timestamps` is not there.
    """

    def __init__(
        self,
        prefill: Executable,
        decode: Executable,
        settings: Settings,
        speech: SpeechTokens,
        tokenizer: bytes | None = None,
    ):
        super().__init__(prefill, decode, settings, tokenizer)
        self.speech = speech

    def first_new(self, input_ids: Any) -> int:
        """See `LanguageModel.first_new`: none stand in front."""
        return 0

    def _call(
        self, input_ids: Any, attention_mask: Any, given: dict[str, Any]
    ) -> tuple[Prompt, Settings, ArrayLibrary | None]:
        if given.get("return_timestamps"):
            raise OptionError("return_timestamps: is not there: leave it out")
        own = {"language", "task", "return_timestamps"}
        others = {name: value for name, value in given.items() if name not in own}
        prompt, settings, library = super()._call(input_ids, attention_mask, others)
        begins = input_ids is not None and any(name in given for name in self._inputs.names)
        if begins or given.get("decoder_input_ids") is not None:
            return prompt, settings, library
        assert isinstance(prompt, SourcePrompt)
        rows = len(prompt.given)
        begun = [prompt.given, *self._told(given.get("language"), given.get("task"), prompt, settings.copies)]
        first = np.concatenate([np.broadcast_to(column, (rows, 1)) for column in begun], 1)
        return prompt.begun_with(first, self.batch), settings, library

    def _told(self, language: Any, task: str | None, prompt: SourcePrompt, copies: int) -> list[Any]:
        """The tokens behind the first, each for all rows or int64[rows, 1], as transformers chooses them."""
        speech = self.speech
        language, task = language or speech.language, task or speech.task
        told: list[Any] = []
        if language is None and task is None and speech.forced:
            heard = [self._heard(prompt)] if speech.languages and None in speech.forced else []
            told += [column for token in speech.forced for column in (heard if token is None else [token])]
        elif isinstance(language, str):
            told.append(speech.language_of(language))
        elif language is not None:
            if not isinstance(language, (list, tuple)) or len(language) * copies != len(prompt.given):
                raise OptionError(f"language: expected a name, or a list of one for each row, got {language!r}")
            told.append(np.repeat([speech.language_of(name) for name in language], copies)[:, None])
        elif speech.languages:
            told.append(self._heard(prompt))
        if task is not None or (language is not None and speech.tasks):
            told.append(speech.task_of(task or _TRANSCRIBE))
        if speech.last is not None and not (told and np.array_equal(told[-1], speech.last)):
            told.append(speech.last)
        return told

    def _heard(self, prompt: SourcePrompt) -> np.ndarray:
        """The token of the language that is the likeliest in each row, int64[rows, 1]."""
        tokens = np.unique(list(self.speech.languages.values()))
        with self._lock:
            self._owner = None
            logits = as_numpy(self.prefill(*prompt.source, prompt.ids[:, :1]))
            return tokens[logits[: len(prompt.given), tokens].argmax(1)][:, None]

    def _finished(self, tokens: np.ndarray, prompt: Prompt, settings: Settings) -> np.ndarray:
        new = tokens[:, prompt.length :]
        ends = np.isin(new, settings.eos_token_id)
        lengths = np.where(ends.any(1), ends.argmax(1), new.shape[1])
        is_text = np.arange(lengths.max(initial=0)) < lengths[:, None]
        return np.where(is_text, new[:, : is_text.shape[1]], settings.filler)
