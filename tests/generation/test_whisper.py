"""Whisper: languages, tasks, what texts begin with, and that they are given without it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from generation.models_with_inputs import model_with_inputs, rows
from generation.small_models import VOCABULARY

import pipeline
from pipeline import OptionError

ENGLISH, GERMAN, FRENCH, TRANSCRIBE, TRANSLATE, NO_TIMES = 13, 14, 15, 10, 11, VOCABULARY - 1


def multilingual():
    """A model whose generation config has what Whisper's checkpoints have."""
    model, read = model_with_inputs("whisper")
    config = model.generation_config
    config.is_multilingual, config.return_timestamps = True, False
    config.lang_to_id = {"<|en|>": ENGLISH, "<|de|>": GERMAN, "<|fr|>": FRENCH}
    config.task_to_id = {"transcribe": TRANSCRIBE, "translate": TRANSLATE}
    config.no_timestamps_token_id = NO_TIMES
    config.suppress_tokens, config.begin_suppress_tokens = [20, 21], [22, 2]
    config.eos_token_id = config.pad_token_id = 2
    return model, read


def compiled(model, read):
    return pipeline.generation.compile(model, 48, batch=4, inputs=rows(read, 0, 1))


@pytest.fixture(scope="module")
def whisper():
    model, read = multilingual()
    return model, read, compiled(model, read)


def test_languages_and_tasks(whisper):
    model, read, lm = whisper
    found = set()
    for settings in (
        {},
        {"language": "de"},
        {"language": "german", "task": "translate"},
        {"language": "<|fr|>"},
        {"task": "translate"},
        {"language": ["fr", "en"]},
        {"language": "en", "num_beams": 2},
        {"language": ["fr", "en"], "num_beams": 2},
        {"language": "en", "do_sample": True, "temperature": 1.0},
        {"decoder_input_ids": torch.tensor([[3, ENGLISH], [3, GERMAN]])},
    ):
        texts = []
        for run in (lm.generate, model.generate):
            torch.manual_seed(3)
            texts.append(run(**read, max_new_tokens=30, **settings))
        assert torch.equal(*texts), settings
        found.add(str(texts[0].tolist()))
    assert len(found) > 7  # or languages and tasks would change nothing
    begun = settings["decoder_input_ids"]
    assert torch.equal(lm.generate(**read, input_ids=begun, max_new_tokens=9), lm.generate(**read, **settings)[:, :9])


def test_the_likeliest_language_is_that_of_each_row(whisper):
    model, read, lm = whisper
    heard = model.detect_language(read["input_features"])
    assert len(set(heard.tolist())) > 1  # or any row would do
    for row in range(2):
        name = {ENGLISH: "en", GERMAN: "de", FRENCH: "fr"}[int(heard[row])]
        one = rows(read, row, 1)
        told = lm.generate(**one, language=name, task="transcribe", max_new_tokens=9)
        assert torch.equal(lm.generate(**one, task="transcribe", max_new_tokens=9), told)


@pytest.mark.parametrize(("settings", "times"), [({}, 1), ({"num_beams": 2}, 1), ({"temperature": 0.7}, 1)], ids=str)
def test_a_source_is_read_once_for_its_language_and_its_text(whisper, settings, times, monkeypatch):
    _, read, lm = whisper
    prefill, calls = lm.prefill, []
    monkeypatch.setattr(lm, "prefill", lambda *given: calls.append(1) or prefill(*given))
    lm.generate(**read, max_new_tokens=3, **settings)
    assert len(calls) == times
    lm.generate(**read, max_new_tokens=3, language="en", **settings)
    assert len(calls) == times + 1
    lm.generate(**read, max_new_tokens=3, prompt_ids=[7, 8], **settings)  # a prompt stands in front of the source's
    assert len(calls) == times + 3


def test_texts_end_without_the_token_that_ends_them(whisper):
    model, read, lm = whisper
    plain = lm.generate(**read, language="en", max_new_tokens=30)
    before = model.generation_config.eos_token_id
    model.generation_config.eos_token_id = int(plain[0, 6])
    try:
        expected = model.generate(**read, language="en", max_new_tokens=30)
        beams = model.generate(**read, language="en", max_new_tokens=30, num_beams=2)
    finally:
        model.generation_config.eos_token_id = before
    ends = {"language": "en", "max_new_tokens": 30, "eos_token_id": int(plain[0, 6])}
    assert torch.equal(lm.generate(**read, **ends), expected)
    assert torch.equal(lm.generate(**read, **ends, num_beams=2), beams)
    assert int(plain[0, 6]) not in expected[0].tolist()


@pytest.mark.parametrize("forced", [[[1, None], [2, TRANSLATE]], [[1, GERMAN], [2, TRANSCRIBE], [3, NO_TIMES]]])
def test_what_old_configs_force(whisper, forced, tmp_path):
    _, _, before = whisper
    model, read = multilingual()
    model.generation_config.forced_decoder_ids = forced
    lm = compiled(model, read)
    expected = model.generate(**read, max_new_tokens=20)
    assert torch.equal(lm.generate(**read, max_new_tokens=20), expected)
    assert torch.equal(
        lm.generate(**read, language="fr", max_new_tokens=20), before.generate(**read, language="fr", max_new_tokens=20)
    )
    lm.save(tmp_path / "lm.pipeline")
    loaded = pipeline.generation.load(tmp_path / "lm.pipeline")
    features = read["input_features"].numpy()
    assert np.array_equal(loaded.generate(features, max_new_tokens=20), expected)
    other = loaded.generate(features, language="fr", max_new_tokens=20)
    assert np.array_equal(other, lm.generate(**read, language="fr", max_new_tokens=20))


def test_what_is_refused(whisper):
    _, read, lm = whisper
    for settings, said in (
        ({"language": "xx"}, "language: expected one of de, en, english, fr, french, german, got 'xx'"),
        ({"task": "sing"}, "task: expected one of transcribe, translate, got 'sing'"),
        ({"language": ["en"]}, r"language: expected a name, or a list of one for each row, got \['en'\]"),
        ({"language": 5}, "language: expected a name, or a list of one for each row, got 5"),
        ({"language": ["en", None]}, "language: expected one of de, .* got None"),
        ({"return_timestamps": True}, "no_timestamps_token_id is the last token: set it"),
    ):
        with pytest.raises(OptionError, match=said):
            lm.generate(**read, **settings)
