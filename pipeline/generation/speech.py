"""Whisper: sounds of any length are heard in windows, and texts are given without what they begin with."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pipeline.errors import ArgumentError, OptionError
from pipeline.generation.encoder_decoder import EncoderDecoderModel, SourcePrompt
from pipeline.generation.inputs import rows_of
from pipeline.generation.prompt import Prompt, integers
from pipeline.generation.settings import Settings, as_dictionary
from pipeline.generation.speech_call import Likelihoods, SpeechCall
from pipeline.generation.speech_recording import SpeechRecording
from pipeline.generation.speech_times import TimeRules
from pipeline.generation.speech_tokens import SpeechTokens
from pipeline.runtime.call.array_libraries import as_numpy, converted, library_of
from pipeline.runtime.call.array_library import ArrayLibrary
from pipeline.runtime.executable import Executable

#: What is done where nothing else is asked for.
_TRANSCRIBE = "transcribe"

#: Below which temperature a text stands in front of the next one.
_SURE = 0.5

#: What is asked of the whole of a recording, not of each of its windows.
_OF_RECORDINGS = {"num_return_sequences", "do_sample", "decoder_input_ids"}


@dataclass(frozen=True)
class _SpeechPrompt(SourcePrompt):
    """A window's prompt.

    Attributes:
        start: how many tokens stand in front of the one that texts begin with.
        known: the logits behind the first token, where the source and that token are in the cache already.
        after_start: the logits behind the one that texts begin with, f32[batch, vocabulary], once they are known.
    """

    start: int
    known: np.ndarray | None
    after_start: list[np.ndarray] = field(default_factory=list)


class SpeechModel(EncoderDecoderModel):
    """Whisper; `pipeline.generation.compile` and `load` make it.

    `generate` takes what transformers' does, see `SpeechCall`: `language` and `task`, and without a language it is the
    likeliest of each row; `return_timestamps`; features of more frames than the example's, which are heard in windows
    of as many. It gives int64[rows, tokens], what follows, without the tokens that texts begin and end with; shorter
    rows have `pad_token_id` behind. With `return_segments` it gives a dictionary: of these, `sequences`, and of
    `segments`, for each row a list of `start` and `end`, in seconds, and `tokens`.
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

    @property
    def window(self) -> int:
        """How many frames of a sound are heard at once."""
        return self._inputs.shape(self._main)[-1]

    def generate(
        self,
        input_ids: Any = None,
        attention_mask: Any = None,
        *,
        assistant_model: Any = None,
        streamer: Any = None,
        **settings: Any,
    ) -> Any:
        """The texts of sounds, see `SpeechModel`.

        Args:
            input_ids: features [rows, bins, frames], as `input_features`; beside these what texts begin with.
            attention_mask: [rows, frames], 0 where a row has ended, for several rows longer than a window.
            assistant_model: not there.
            streamer: is given each window's tokens.
            settings: see `SpeechCall` and `Settings`.

        Raises:
            ArgumentError: the features or tokens don't fit; says how.
            OptionError: a setting is unknown or out of range.
        """
        if assistant_model is not None:
            raise OptionError(f"assistant_model: is not there for {self.kind}: leave it out")
        recording = self._recording(input_ids, attention_mask, settings)
        with self._lock:
            while active := recording.active:
                self._hear(recording, active, streamer)
        return self._result(recording)

    @property
    def _main(self) -> str:
        return next(name for name in self._inputs.names if name != "attention_mask")

    @property
    def _most(self) -> int:
        """How many tokens a text has at most, with those in front of it."""
        return min(self.speech.positions, self.max_length)

    @property
    def _stride(self) -> int:
        """How many frames there are from one time to the next."""
        return self.window // self.max_source_length

    @property
    def _first_time(self) -> int:
        """The token of the first time; one that is none, without times."""
        return self.vocabulary + 1 if self.speech.last is None else self.speech.last + 1

    def _call(
        self, input_ids: Any, attention_mask: Any, given: dict[str, Any]
    ) -> tuple[Prompt, Settings, ArrayLibrary | None]:
        recording = self._recording(input_ids, attention_mask, given)
        frames = recording.sounds[self._main].shape[-1]
        if frames > self.window:
            raise OptionError(f"stream: {frames} frames are more than a window of {self.window}: use generate")
        temperature = recording.call.temperatures[0]
        rows = recording.active
        return *self._window(recording, rows, self._opening(recording, rows), temperature, None), recording.library

    def _recording(self, input_ids: Any, attention_mask: Any, given: dict[str, Any]) -> SpeechRecording:
        """What is to be heard, of a call's arguments."""
        given, name = dict(given), self._main
        if name not in given:
            given[name], input_ids = input_ids, None
        if input_ids is not None:
            given["decoder_input_ids"] = input_ids
        library = library_of(given[name])
        of_call = given.get("generation_config")
        config = {} if of_call is None else dict(as_dictionary(of_call))
        call = SpeechCall.of({name: config.get(name) for name in SpeechCall.of_configs()} | _told(given), self.speech)
        copies = self.settings.but(
            do_sample=True, num_beams=1, num_return_sequences=(config | _told(given)).get("num_return_sequences")
        ).num_return_sequences
        features = np.repeat(rows_of(name, given.pop(name)), copies, 0)
        rows, shape = len(features), self._inputs.shape(name)
        if not rows or features.ndim != len(shape) or features.shape[1:-1] != tuple(shape[1:-1]):
            expected = ", ".join(map(str, ("rows", *shape[1:-1], "frames")))
            raise ArgumentError(f"{name}: expected [{expected}], got {list(features.shape)}")
        ends = self._ends(features, attention_mask, copies)
        if features.shape[-1] > self.window:
            if call.return_timestamps is False:
                raise OptionError(
                    f"return_timestamps: {features.shape[-1]} frames are more than a window of {self.window}, of which "
                    "times say where the next one begins: set it to True"
                )
            call = replace(call, return_timestamps=True)
            call.check(self.speech)
        if call.return_timestamps and self._first_time >= self.vocabulary:
            raise OptionError(
                "return_timestamps: the generation_config's no_timestamps_token_id is the last token: set it"
            )
        if given.get("return_dict_in_generate"):
            raise OptionError("return_dict_in_generate: is not there for Whisper: return_segments gives segments")
        if call.condition_on_prev_tokens and rows > 1:
            raise OptionError(f"condition_on_prev_tokens: is there for one row at a time, got {rows}")
        begun = given.get("decoder_input_ids")
        if begun is not None:
            begun = np.repeat(integers("decoder_input_ids", begun), copies, 0)
            if len(begun) != rows or not begun.shape[1]:
                raise ArgumentError(
                    f"decoder_input_ids: expected tokens for {rows // copies} rows, got [{len(begun) // copies}, "
                    f"{begun.shape[1]}]"
                )
        others = {
            key: value for key, value in given.items() if key not in _OF_RECORDINGS and key not in SpeechCall.names()
        }
        if config:
            others["generation_config"] = {key: value for key, value in config.items() if key not in _OF_RECORDINGS}
        sounds = {name: features}
        if "attention_mask" in self._inputs.names:
            sounds["attention_mask"] = np.ones((rows, features.shape[-1]), np.int64)
            if attention_mask is not None:
                sounds["attention_mask"] = np.repeat(integers("attention_mask", attention_mask), copies, 0)
        most = self.settings.of_call(others, library).max_length
        return SpeechRecording(
            call=call,
            others=others,
            sounds=sounds,
            library=library,
            ends=ends,
            copies=copies,
            first_begun=begun,
            longest=self._most if most is None else most,
        )

    def _ends(self, features: np.ndarray, attention_mask: Any, copies: int) -> np.ndarray:
        """How many frames of each row there are."""
        rows, frames = len(features) // copies, features.shape[-1]
        mask = None if attention_mask is None else integers("attention_mask", attention_mask)
        if mask is not None and mask.shape != (rows, frames):
            raise ArgumentError(
                f"attention_mask: expected [{rows}, {frames}], as the features have, got {list(mask.shape)}"
            )
        if rows == 1 or frames <= self.window:
            return np.full(rows * copies, frames)
        if mask is None:
            raise ArgumentError(
                f"attention_mask: {rows} rows longer than a window of {self.window} frames need one that says where "
                "each of them ends: processor(audio, return_attention_mask=True)"
            )
        return np.repeat(mask.sum(-1), copies)

    def _begun_of(self, recording: SpeechRecording) -> np.ndarray:
        """What each row's texts begin with, int64[rows, count], as transformers chooses it."""
        if recording.begun is not None:
            return recording.begun
        speech, call, rows = self.speech, recording.call, len(recording.ends)
        start = self._begun(None, rows, self.settings.of_call(recording.others, recording.library))
        language, task, told = call.language, call.task, []
        if language is None and task is None and speech.forced:
            heard = [self._heard(recording, start)] if speech.languages and None in speech.forced else []
            told += [column for token in speech.forced for column in (heard if token is None else [token])]
        elif isinstance(language, str):
            told.append(speech.language_of(language))
        elif language is not None:
            if not isinstance(language, (list, tuple)) or len(language) * recording.copies != rows:
                raise OptionError(f"language: expected a name, or a list of one for each row, got {language!r}")
            told.append(np.repeat([speech.language_of(name) for name in language], recording.copies)[:, None])
        elif speech.languages:
            told.append(self._heard(recording, start))
        if task is not None or (language is not None and speech.tasks):
            told.append(speech.task_of(task or _TRANSCRIBE))
        is_last = bool(told) and speech.last is not None and np.array_equal(told[-1], speech.last)
        if call.return_timestamps:
            told = told[:-1] if is_last else told
        elif speech.last is not None and not is_last:
            told.append(speech.last)
        recording.begun = np.concatenate([start, *(np.broadcast_to(column, (rows, 1)) for column in told)], 1)
        return recording.begun

    def _heard(self, recording: SpeechRecording, start: np.ndarray) -> np.ndarray:
        """The token of the language that is the likeliest in each row, int64[rows, 1]."""
        tokens = np.unique(list(self.speech.languages.values()))
        given = self._given(recording, list(range(len(start)))) | {"decoder_input_ids": start}
        prompt, settings, _ = super()._call(None, None, given)
        assert isinstance(prompt, SourcePrompt)
        with self._lock:
            self._owner = None
            recording.first_logits = np.array(as_numpy(self._source_logits(prompt)))
        recording.first_rows = len(prompt.given)
        of_rows = recording.first_logits[: recording.first_rows : settings.copies]
        return tokens[of_rows[:, tokens].argmax(1)][:, None]

    def _given(self, recording: SpeechRecording, rows: list[int]) -> dict[str, Any]:
        """A call of the next window of some rows, as `EncoderDecoderModel` takes it."""
        heard = recording.windows(rows, self.window)
        if recording.library is not None:
            heard = {name: converted(array, recording.library) for name, array in heard.items()}
        return recording.others | heard | {"num_return_sequences": 1, "do_sample": False}

    def _opening(self, recording: SpeechRecording, rows: list[int]) -> tuple[np.ndarray, int]:
        """What texts of the next window begin with, int64[rows, count], and how many tokens of it were heard before."""
        if recording.first_begun is not None:
            return recording.first_begun[rows], 0
        leading = np.stack([recording.leading(row, self.speech, self._first_time) for row in rows])
        return np.concatenate([leading, self._begun_of(recording)[rows]], 1), leading.shape[1]

    def _window(
        self,
        recording: SpeechRecording,
        rows: list[int],
        opening: tuple[np.ndarray, int],
        temperature: float,
        likelihoods: list[Likelihoods] | None,
    ) -> tuple[_SpeechPrompt, Settings]:
        """The prompt of the next window of some rows, and how its tokens are chosen."""
        call, speech, (begun, start) = recording.call, self.speech, opening
        longest = min(recording.longest + min(begun.shape[1], self._most // 2 - 1), self._most)
        given = self._given(recording, rows) | {"decoder_input_ids": begun, "max_length": longest}
        if temperature:
            given["num_beams"] = 1  # which are not drawn
        prompt, settings, _ = super()._call(None, None, given)
        settings = call.at(temperature, settings)
        processors = list(settings.logits_processor)
        if call.return_timestamps:
            ends = settings.eos_token_id[0] if settings.eos_token_id else self._first_time - 1
            processors.insert(0, TimeRules(self._first_time, ends, begun.shape[1], speech.latest_start))
        if likelihoods is not None and call.logprob_threshold is not None:
            if settings.num_beams > 1:
                raise OptionError("logprob_threshold: is not there with beams: leave it or num_beams out")
            likelihoods.append(Likelihoods(settings))
            processors.append(likelihoods[-1])
        chosen = replace(settings, logits_processor=tuple(processors))
        return _SpeechPrompt(**vars(prompt), start=start, known=None), chosen

    def _logits(self, prompt: Prompt, tokens: np.ndarray, number: int, settings: Settings) -> Any:
        if number or not isinstance(prompt, _SpeechPrompt):
            return super()._logits(prompt, tokens, number, settings)
        for place, logits in enumerate(self._begun_logits(prompt)):
            if place == prompt.start:
                prompt.after_start[:] = [np.array(as_numpy(logits))]
        return logits

    def _source_logits(self, prompt: SourcePrompt) -> Any:
        known = prompt.known if isinstance(prompt, _SpeechPrompt) else None
        return super()._source_logits(prompt) if known is None else known

    def _hear(self, recording: SpeechRecording, active: list[int], streamer: Any) -> None:
        """Hears the next window of rows, at one temperature after another until their texts are good enough."""
        call, left = recording.call, active
        begun, start = self._opening(recording, active)
        found: dict[int, np.ndarray | None] = {}
        for temperature in call.temperatures:
            likelihoods: list[Likelihoods] = []
            opening = begun[np.isin(active, left)], start
            prompt, settings = self._window(recording, left, opening, temperature, likelihoods)
            if not start and len(prompt.given) == recording.first_rows:
                prompt = replace(prompt, known=recording.first_logits)
            recording.first_logits = None
            whole = self._texts(prompt, settings, recording.library, None, streamer)
            texts = [_without_padding(text, settings) for text in whole[:, prompt.length :]]
            means = likelihoods[0].means(whole, list(map(len, texts))) if likelihoods else [0.0] * len(texts)
            again = []
            for number, (row, text, mean) in enumerate(zip(left, texts, means, strict=True)):
                silent = call.no_speech_threshold is not None and call.is_silence(mean, self._silence(prompt, number))
                found[row] = None if silent else _without_end(text, settings)
                recording.is_leading[row] = call.condition_on_prev_tokens and temperature < _SURE
                if not silent and call.is_poor(text, mean, self.vocabulary):
                    again.append(row)
            left = again
            if not left:
                break
        recording.first_begun, recording.longest = None, settings.max_length or 0
        for row, heard in found.items():
            if heard is None:
                recording.skip(row, self.window)
            else:
                recording.add(row, heard, self._first_time, self.window, self._stride)

    def _silence(self, prompt: _SpeechPrompt, number: int) -> float:
        """How likely silence is in a row of a window."""
        assert self.speech.last is not None
        logits = prompt.after_start[0][number]
        powers = np.exp(logits - logits.max())
        return float(powers[self.speech.last - 1] / powers.sum())

    def _result(self, recording: SpeechRecording) -> Any:
        """What `generate` gives."""

        def in_library(array: np.ndarray) -> Any:
            return array if recording.library is None else converted(array, recording.library)

        nothing = np.zeros(0, np.int64)
        texts = [np.concatenate([nothing, *(part.tokens for part in row)]) for row in recording.segments]
        filler = self.settings.of_call(recording.others, recording.library).filler
        longest = max(map(len, texts))
        padded = np.stack([np.pad(text, (0, longest - len(text)), constant_values=filler) for text in texts])
        if not recording.call.return_segments:
            return in_library(padded)
        segments = [
            [{"start": part.start, "end": part.end, "tokens": in_library(part.tokens)} for part in row]
            for row in recording.segments
        ]
        return {"sequences": in_library(padded), "segments": segments}


def _told(given: dict[str, Any]) -> dict[str, Any]:
    """What a call says, without what it leaves to a config."""
    return {name: value for name, value in given.items() if value is not None}


def _without_padding(text: np.ndarray, settings: Settings) -> np.ndarray:
    """A row's text, int64[count], up to the token that ends it."""
    filler = settings.filler
    if not len(text) or text[-1] != filler:
        return text
    count = int((text == filler).sum()) - (filler in settings.eos_token_id)
    return text[: len(text) - count]


def _without_end(text: np.ndarray, settings: Settings) -> np.ndarray:
    return text[:-1] if len(text) and text[-1] in settings.eos_token_id else text
