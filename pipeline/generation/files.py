"""Language models in files: their entries, the weights once, and what `generate` goes by."""

from __future__ import annotations

import functools
import json
from pathlib import Path

from pipeline.errors import ArtifactError
from pipeline.generation.encoder_decoder import EncoderDecoderModel
from pipeline.generation.inputs import ExpectedInputs
from pipeline.generation.language_model import LanguageModel
from pipeline.generation.settings import Settings
from pipeline.generation.speech import SpeechModel
from pipeline.generation.speech_tokens import SpeechTokens
from pipeline.runtime.bundle import Bundle

#: The names of files in a bundle.
_SETTINGS, _TOKENIZER, _INPUTS, _SPEECH = "generation.json", "tokenizer.json", "inputs.json", "speech.json"

#: The executables in every bundle, and those that some models have.
_ENTRIES, _FURTHER = {"prefill", "decode"}, ("extend", "join", "text")


def save(lm: LanguageModel, path: str | Path, tokenizer: str | Path | None, prepacked: bool) -> None:
    """See `LanguageModel.save`."""
    told = {_SETTINGS: lm.settings.to_json(), _INPUTS: lm.expected_inputs.to_json()}
    if isinstance(lm, SpeechModel):
        told[_SPEECH] = lm.speech.to_json()
    files = {name: json.dumps(found).encode() for name, found in told.items()}
    if tokenizer is not None:
        try:
            files[_TOKENIZER] = Path(tokenizer).read_bytes()
        except OSError as error:
            raise ArtifactError(f"{tokenizer}: cannot be read: {error}") from error
    elif lm.tokenizer is not None:
        files[_TOKENIZER] = lm.tokenizer
    entries = lm.entries()
    buffers = {name for entry in entries.values() for name in entry.buffers}
    Bundle(entries, files, buffers).save(path, prepacked=prepacked)


def load(path: str | Path) -> LanguageModel:
    """See `pipeline.generation.load`."""
    bundle = Bundle.load(path)
    entries = bundle.entries
    if not _ENTRIES <= entries.keys() <= {*_ENTRIES, *_FURTHER} or not {_SETTINGS, _INPUTS} <= bundle.files.keys():
        raise ArtifactError(f"{path}: is no language model; LanguageModel.save makes those")
    settings = Settings().but(**json.loads(bundle.files[_SETTINGS]))
    tokenizer = bundle.files.get(_TOKENIZER)
    if any(name.startswith("source.") for name in entries["prefill"].buffers):
        if _SPEECH not in bundle.files:
            return EncoderDecoderModel(entries["prefill"], entries["decode"], settings, tokenizer)
        speech = SpeechTokens(**json.loads(bundle.files[_SPEECH]))
        return SpeechModel(entries["prefill"], entries["decode"], settings, speech, tokenizer)
    extend, join, text = (
        functools.partial(entries.__getitem__, name) if name in entries else None for name in _FURTHER
    )
    expected = ExpectedInputs.of_json(json.loads(bundle.files[_INPUTS]))
    prefill, decode = entries["prefill"], entries["decode"]
    return LanguageModel(prefill, decode, extend, settings, tokenizer, join, text, expected)
