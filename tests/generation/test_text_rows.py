"""Texts that begin and end at different steps have the tokens that each has alone."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from generation.small_models import prompt, small_model

import pipeline
from pipeline import ArgumentError, OptionError, PipelineError
from pipeline.generation.rows import TextRows

SLOTS, BATCH = 64, 3


@pytest.fixture(scope="module", params=["llama", "gpt2"])
def lm(request):
    kind = {"llama": {"kv_cache": "model"}, "gpt2": {"kv_cache": "int8"}}[request.param]
    return pipeline.generation.compile(small_model(request.param), max_length=SLOTS, batch=BATCH, **kind)


def texts():
    """Prompts and settings: of unequal length, drawn or not, until a token or the end of the cache."""
    lengths = [9, 1, 30, 4, 17, 2, 50, 6]
    prompts = [prompt(1, length, seed)[0].numpy() for seed, length in enumerate(lengths)]
    settings = [{"max_new_tokens": 6 + 5 * number % 17} for number in range(len(lengths))]
    settings[1] = {"max_new_tokens": 60}  # while others come and go, until rows have to move
    settings[3] |= {"do_sample": True, "top_k": 0, "temperature": 2.0}
    settings[4] |= {"repetition_penalty": 1.4}
    settings[6] = {}  # to the end of the cache
    return list(zip(prompts, settings, strict=True))


def alone(lm, ids, settings):
    pipeline.manual_seed(3)
    return lm.generate(ids[None], **settings)[0, len(ids) :].tolist()


def test_each_text_is_as_alone(lm):
    given = texts()
    ended = alone(lm, *given[5])[3]
    given[5][1]["eos_token_id"] = ended
    wanted = [alone(lm, ids, settings) for ids, settings in given]
    rows, waiting, started, taken = lm.rows(), list(given), [], {}
    places = [buffer.data_ptr() for buffer in lm.buffers.values()]
    for step in range(400):
        while waiting and rows.free and (step % 3 == 0 or not started):
            ids, settings = waiting.pop(0)
            pipeline.manual_seed(3)
            started.append(rows.start(ids, **settings))
        found = rows.step()
        for row, token in found:
            taken.setdefault(row, []).append(token)
        if not found and not waiting:
            break
    assert [row.tokens for row in started] == wanted == [taken[row] for row in started]
    assert [row.reason for row in started] == ["length"] * 5 + ["stop"] + ["length"] * 2
    assert rows.free == BATCH and rows.step() == []
    assert places == [buffer.data_ptr() for buffer in lm.buffers.values()]


def test_a_prompt_beside_others_is_computed_alone(lm, monkeypatch):
    calls = []
    together, joined = TextRows._together, TextRows._joined
    monkeypatch.setattr(TextRows, "_together", lambda rows, *args: calls.append("together") or together(rows, *args))
    monkeypatch.setattr(TextRows, "_joined", lambda rows, *args: calls.append("joined") or joined(rows, *args))
    rows = lm.rows()
    for seed in range(3):
        rows.start(prompt(1, 4, seed)[0], max_new_tokens=9)
    rows.step()
    assert calls == ["together"]  # three short ones read the weights once
    rows = lm.rows()
    for length in (9, 1):
        rows.start(prompt(1, length)[0], max_new_tokens=5)
        rows.step()
    rows.start(prompt(1, 20)[0], max_new_tokens=5)
    rows.step()
    assert calls == ["together", *["joined"] * 3]
    assert 0 < sum(memory.nbytes for memory in lm._join().buffers.values()) == lm.cache_bytes // BATCH


def test_bundles_take_prompts_beside_others_without_torch(lm, tmp_path):
    lm.save(tmp_path / "lm")
    texts = [prompt(1, length)[0].numpy() for length in (9, 20)]
    wanted = [lm.generate(ids[None], max_new_tokens=6)[0, len(ids) :].tolist() for ids in texts]
    program = f"""
import sys
import pipeline
rows, texts = pipeline.generation.load({str(tmp_path / "lm")!r}).rows(), []
for ids in {[ids.tolist() for ids in texts]}:
    texts.append(rows.start(ids, max_new_tokens=6))
    rows.step()
while rows.step():
    pass
assert [text.tokens for text in texts] == {wanted}
assert not any(name in sys.modules for name in ("torch", "torch_mlir", "transformers"))
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_texts_that_are_given_up_leave_the_others_alone(lm):
    ids = [prompt(1, 5 + seed, seed)[0] for seed in range(4)]
    wanted = lm.generate(ids[1][None], max_new_tokens=30)[0, 6:].tolist()
    rows = lm.rows()
    first, second, third = (rows.start(one, max_new_tokens=30) for one in ids[:3])
    for _ in range(4):
        rows.step()
    rows.end(first)
    rows.end(third)
    late = rows.start(ids[3].tolist(), max_new_tokens=9)
    unheard = rows.start(ids[3], max_new_tokens=9)
    rows.end(unheard)
    assert rows.free == 1 and unheard.reason == first.reason == "ended"
    while not (second.is_done and late.is_done):
        rows.step()
    assert second.tokens == wanted and len(first.tokens) == 4 and not unheard.tokens
    assert late.tokens == lm.generate(ids[3][None], max_new_tokens=9)[0, 8:].tolist()


def test_what_is_refused(lm):
    rows, ids = lm.rows(), np.arange(2, 7)
    for name, value in (("num_beams", 2), ("reuse_cache", True), ("prompt_lookup_num_tokens", 2)):
        with pytest.raises(OptionError, match=f"{name}: is not there for rows that come and go"):
            rows.start(ids, **{name: value})
    for one, count in ((ids[:0], 3), ([], 3), (ids, 61), (ids, 0)):
        with pytest.raises(ArgumentError, match="expected one token at least"):
            rows.start(one, max_new_tokens=count)
    for _ in range(BATCH):
        rows.start(ids)
    with pytest.raises(PipelineError, match="all 3 rows of the cache are taken"):
        rows.start(ids)
    lm.generate(torch.from_numpy(ids[None]), max_new_tokens=1)
    with pytest.raises(PipelineError, match="another call has taken the cache"):
        rows.step()
