"""Whisper with times, and sounds longer than what it hears at once: each beside transformers' `generate`."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from generation.models_with_inputs import model_with_inputs, rows
from transformers import WhisperTimeStampLogitsProcessor

import pipeline
from pipeline import ArgumentError, OptionError
from pipeline.generation.speech_times import TimeRules, segments_of

END, NO_TIMES, FIRST, PREVIOUS = 40, 45, 46, 30
WINDOW = 100

#: Two sounds, of 430 and 290 frames.
SOUNDS = torch.randn(2, 16, 430, generator=torch.Generator().manual_seed(1))
MASK = (torch.arange(430) < torch.tensor([[430], [290]])).long()

PROMPT = torch.tensor([PREVIOUS, 7, 8, 9, 12])


@pytest.fixture(scope="module")
def whisper():
    """A model whose last 51 tokens are times, of which a window has as many."""
    model, read = model_with_inputs("whisper")
    config = model.generation_config
    config.is_multilingual, config.return_timestamps = True, False
    config.lang_to_id = {"<|en|>": 41, "<|de|>": 42, "<|fr|>": 43}
    config.task_to_id = {"transcribe": 10, "translate": 11}
    config.no_timestamps_token_id, config.prev_sot_token_id, config.max_initial_timestamp_index = NO_TIMES, PREVIOUS, 30
    config.suppress_tokens, config.begin_suppress_tokens = [20, 21, 41, 42, 43], [22, END]
    config.eos_token_id = config.pad_token_id = END
    config.max_length = 128
    return model, read["input_features"], pipeline.generation.compile(model, 128, batch=4, inputs=rows(read, 0, 1))


@pytest.fixture(autouse=True)
def draws_that_do_not_depend_on_rounding(monkeypatch):
    """Draws are at a share of what is likely: torch's own of thousands of tokens sooner or later meet two equals."""

    def drawn(likely, num_samples):
        shares, order = likely.sort(dim=-1, descending=True, stable=True)
        place = (shares.cumsum(-1) <= 0.62).sum(-1, keepdim=True)
        return order.gather(-1, place)

    monkeypatch.setattr(torch, "multinomial", drawn)


def assert_same(whisper, features, **settings):
    """The tokens and, of `segments`, the times are those of transformers; how many segments rows have."""
    model, _, lm = whisper
    settings = {"max_new_tokens": 25} | settings
    found = lm.generate(features, return_segments=True, **settings)
    expected = model.generate(features, return_segments=True, **settings)
    assert torch.equal(found["sequences"], expected["sequences"])
    for row, of_eager in zip(found["segments"], expected["segments"], strict=True):
        for part, other in zip(row, of_eager, strict=True):
            assert torch.equal(part["tokens"], other["tokens"])
            assert (part["start"], part["end"]) == (float(other["start"]), float(other["end"]))
    assert torch.equal(lm.generate(features, **settings), found["sequences"])
    return [len(row) for row in found["segments"]]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"num_beams": 2},
        {"language": ["de", "fr"]},
        {"language": "en", "task": "translate", "max_new_tokens": None},
        {"temperature": 0.7},
        {"max_length": 20, "max_new_tokens": None},
    ],
    ids=str,
)
def test_texts_have_times(whisper, settings):
    _, features, _ = whisper
    assert max(assert_same(whisper, features, return_timestamps=True, **settings)) > 1


@pytest.mark.parametrize(
    "settings",
    [
        {"language": ["de", "fr"]},
        {"max_length": 20, "max_new_tokens": None},
        {"num_beams": 2},
        {"compression_ratio_threshold": 1.1, "temperature": (0.0, 0.4, 0.9)},
        {"logprob_threshold": -0.2, "temperature": (0.0, 0.4, 0.9)},
        {"logprob_threshold": -1.0, "no_speech_threshold": 3e-9, "temperature": (0.0, 0.4)},
        {"logprob_threshold": -0.3, "no_speech_threshold": 3e-9, "temperature": 0.0},
    ],
    ids=str,
)
def test_long_sounds_are_heard_in_windows(whisper, settings):
    assert min(assert_same(whisper, SOUNDS, attention_mask=MASK, return_timestamps=True, **settings)) > 1
    if "language" not in settings:
        assert assert_same(whisper, SOUNDS[:1], return_timestamps=True, **settings)[0] > 1


@pytest.mark.parametrize(
    "settings",
    [
        {"prompt_ids": PROMPT},
        {"condition_on_prev_tokens": True},
        {"condition_on_prev_tokens": True, "prompt_ids": PROMPT},
        {"condition_on_prev_tokens": True, "prompt_ids": PROMPT, "prompt_condition_type": "all-segments"},
        {"condition_on_prev_tokens": True, "logprob_threshold": -0.3, "temperature": (0.0, 0.4, 0.9)},
        {
            "condition_on_prev_tokens": True,
            "logprob_threshold": -0.3,
            "no_speech_threshold": 3e-9,
            "temperature": (0.0, 0.4),
        },
    ],
    ids=lambda found: ", ".join(found),
)
def test_what_was_heard_stands_in_front(whisper, settings):
    plain = whisper[2].generate(SOUNDS[:1], max_new_tokens=25, return_timestamps=True)
    assert_same(whisper, SOUNDS[:1], return_timestamps=True, **settings)
    found = whisper[2].generate(SOUNDS[:1], max_new_tokens=25, return_timestamps=True, **settings)
    assert not torch.equal(found, plain)  # or what stands in front would change nothing


def test_prompts_without_times_and_sounds_shorter_than_a_window(whisper):
    _, features, _ = whisper
    assert_same(whisper, features, prompt_ids=PROMPT)
    assert_same(whisper, features[..., :80], language="en")
    assert_same(whisper, features, attention_mask=torch.ones(2, WINDOW, dtype=torch.int64))


def test_what_a_generation_config_says(whisper):
    model, features, lm = whisper
    config = copy.deepcopy(model.generation_config)
    config.language, config.return_timestamps, config.max_new_tokens = "fr", True, 12
    found = lm.generate(features, generation_config=config)
    assert torch.equal(found, model.generate(features, generation_config=config))
    assert torch.equal(found, lm.generate(features, language="fr", return_timestamps=True, max_new_tokens=12))
    assert not torch.equal(found, lm.generate(features, generation_config=config, language="de"))
    plain = lm.generate(features, max_new_tokens=12)
    assert torch.equal(plain, lm.generate(features, generation_config=None, max_new_tokens=12))
    config.num_return_sequences = 2
    assert torch.equal(lm.generate(features, generation_config=config), found.repeat_interleave(2, 0))


def test_several_texts_of_a_sound_are_drawn(whisper, monkeypatch):
    monkeypatch.undo()
    _, features, lm = whisper
    found = lm.generate(features, temperature=1.5, num_return_sequences=2, max_new_tokens=20)
    assert len(found) == 4 and not torch.equal(found[0], found[1])
    greedy = lm.generate(features, num_return_sequences=2, max_new_tokens=20)
    assert torch.equal(greedy, lm.generate(features, max_new_tokens=20).repeat_interleave(2, 0))


def test_streams_are_of_one_window(whisper):
    _, features, lm = whisper
    settings = {"language": "en", "return_timestamps": True, "max_new_tokens": 9}
    streamed = np.stack(list(lm.stream(features, **settings)), 1)
    assert (streamed[:, 0] >= FIRST).all()
    assert np.array_equal(streamed[:, :2], lm.generate(features, **settings)[:, :2])
    with pytest.raises(OptionError, match="stream: 430 frames are more than a window of 100: use generate"):
        lm.stream(SOUNDS[:1], return_timestamps=True)

    class Streamer:
        def __init__(self):
            self.windows, self.tokens = 0, []

        def put(self, tokens):
            self.tokens.append(tokens)

        def end(self):
            self.windows += 1

    streamer = Streamer()
    lm.generate(SOUNDS[:1], streamer=streamer, **settings)
    assert streamer.windows > 3 and len(streamer.tokens) > 2 * streamer.windows


def test_in_files(whisper, tmp_path):
    _, _, lm = whisper
    lm.save(tmp_path / "lm.pipeline")
    loaded = pipeline.generation.load(tmp_path / "lm.pipeline")
    settings = {"return_timestamps": True, "return_segments": True, "max_new_tokens": 25}
    found = loaded.generate(SOUNDS.numpy(), MASK.numpy(), **settings)
    expected = lm.generate(SOUNDS, MASK, **settings)
    assert np.array_equal(found["sequences"], expected["sequences"])
    assert found["segments"][1][0]["end"] == expected["segments"][1][0]["end"]


@pytest.mark.parametrize("latest_start", [None, 3])
def test_rules_of_times_are_those_of_transformers(whisper, latest_start):
    config = type("Config", (), {"no_timestamps_token_id": NO_TIMES, "eos_token_id": END})
    config.max_initial_timestamp_index = latest_start
    generator = torch.Generator().manual_seed(0)
    choices = torch.tensor([5, 6, 44, 46, 47, 50, 60, 96])
    for count in (0, 1, 2, 3, 6):
        text = choices[torch.randint(len(choices), (64, count), generator=generator)]
        before = torch.cat([torch.full((64, 3), 50), text], 1)
        scores = torch.randn(64, 97, generator=generator) * 3
        expected = WhisperTimeStampLogitsProcessor(config, begin_index=3)(before, scores)
        found = TimeRules(FIRST, END, 3, latest_start)(before.numpy(), scores.numpy())
        assert np.array_equal(found, expected)


def test_a_time_at_the_begin_of_a_window_ends_no_loop():
    """Without rules for times a text may say that nothing was heard of a window: the next one is heard."""
    segments, moved = segments_of(np.array([FIRST, 5, FIRST, FIRST, 6]), FIRST, 200, WINDOW, 2)
    assert moved == WINDOW and [part.start for part in segments] == [2.0]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"return_timestamps": False}, "return_timestamps: 430 frames are more than a window of 100.*: set it to True"),
        ({"features": SOUNDS}, "attention_mask: 2 rows longer than a window of 100 frames need one"),
        ({"features": SOUNDS, "attention_mask": MASK[:, :9]}, r"attention_mask: expected \[2, 430\], .* got \[2, 9\]"),
        ({"features": SOUNDS[:, :8]}, r"input_features: expected \[rows, 16, frames\], got \[2, 8, 430\]"),
        ({"features": SOUNDS[0]}, r"input_features: expected \[rows, 16, frames\], got \[16, 430\]"),
        ({"features": None}, "input_features: expected a tensor for all rows, got NoneType"),
        ({"features": SOUNDS, "attention_mask": MASK, "condition_on_prev_tokens": True}, "one row at a time, got 2"),
        ({"decoder_input_ids": [[3, 41]] * 2}, r"decoder_input_ids: expected tokens for 1 rows, got \[2, 2\]"),
        ({"num_return_sequences": "2"}, "num_return_sequences: expected a number from 1, got '2'"),
        ({"return_dict_in_generate": True}, "return_dict_in_generate: is not there for Whisper"),
        ({"generation_config": 3}, "generation_config: expected one of transformers' or a dictionary, got 3"),
        ({"temperature": "hot"}, "temperature: expected a number from 0, or a list of some, got 'hot'"),
        ({"temperature": ()}, r"temperature: expected a number from 0, or a list of some, got \(\)"),
        ({"logprob_threshold": "low"}, "logprob_threshold: expected a number, got 'low'"),
        ({"logprob_threshold": -1.0, "num_beams": 2}, "logprob_threshold: is not there with beams"),
        ({"no_speech_threshold": 0.6}, "no_speech_threshold: is for windows below logprob_threshold: give that, too"),
        ({"prompt_condition_type": "all"}, "prompt_condition_type: expected one of first-segment, all-segments"),
        ({"prompt_condition_type": "all-segments"}, "is for condition_on_prev_tokens=True: set that"),
        ({"prompt_ids": "text"}, "prompt_ids: expected tokens"),
        ({"max_length": "12"}, "max_length: expected a number from 0, got '12'"),
        ({"max_new_tokens": 2.5}, "max_new_tokens: expected a number from 0, got 2.5"),
        ({"return_token_timestamps": True}, "generate has no setting 'return_token_timestamps'"),
    ],
    ids=lambda found: found if isinstance(found, str) else ", ".join(found),
)
def test_what_is_refused(whisper, settings, said):
    settings = {"return_timestamps": True, "features": SOUNDS[:1]} | settings
    with pytest.raises((OptionError, ArgumentError), match=said):
        whisper[2].generate(settings.pop("features"), **settings)
