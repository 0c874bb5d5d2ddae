"""Language models as files: both entries, one cache, without torch; and the driver."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from generation.small_models import VOCABULARY, eager, prompt, small_model
from tokenizers import Tokenizer, models, pre_tokenizers

import pipeline
from pipeline.tools import generate

WORDS = {f"w{number}": number for number in range(VOCABULARY)}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    tokenizer = Tokenizer(models.WordLevel(WORDS, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    lm = pipeline.generation.compile(small_model("llama"), max_length=64)
    expected = lm.generate(prompt(1, 7), max_new_tokens=20)
    lm.save(folder / "lm.pipeline", tokenizer=folder / "tokenizer.json")
    return folder, expected.numpy()


def test_it_runs_without_torch(saved):
    folder, expected = saved
    program = f"""
import sys
import numpy as np
import pipeline
lm = pipeline.generation.load({str(folder / "lm.pipeline")!r})
ids = np.array({expected[:, :7].tolist()})
assert lm.generate(ids, max_new_tokens=20).tolist() == {expected.tolist()}
assert not any(name in sys.modules for name in ("torch", "torch_mlir", "transformers"))
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_both_entries_have_one_cache_and_no_text_is_kept(saved):
    folder, expected = saved
    lm = pipeline.generation.load(folder / "lm.pipeline")
    assert lm.max_length == 64 and lm.batch == 1
    assert not any(buffer.any() for buffer in lm.buffers.values())
    places = [buffer.ctypes.data for buffer in lm.prefill.buffers.values()]
    assert places == [buffer.ctypes.data for buffer in lm.decode.buffers.values()]
    assert np.array_equal(lm.generate(expected[:, :7], max_new_tokens=20), expected)
    assert all(buffer.any() for buffer in lm.buffers.values())
    lm.reset()
    assert not any(buffer.any() for buffer in lm.buffers.values())
    weights = sum(parameter.nbytes for parameter in small_model("llama").parameters())
    assert sum(tensor.nbytes for name, tensor in lm.decode.weights.items() if "cache" not in name) < weights + 1000
    lm.save(folder / "again.pipeline")
    again = pipeline.generation.load(folder / "again.pipeline")
    assert np.array_equal(again.generate(expected[:, :7], max_new_tokens=20), expected)


def text_of(ids):
    return " ".join(f"w{token}" for token in ids)


def test_the_driver_prints_tokens_and_their_speed(saved, capsys):
    folder, expected = saved
    args = [str(folder / "lm.pipeline"), "--prompt", text_of(expected[0, :7]), "--max-new-tokens", "20"]
    assert generate.main(args) == 0
    out, err = capsys.readouterr()
    assert out.split() == text_of(expected[0, 7:]).split()
    assert "7 tokens of prompt" in err and "19 tokens after the first at" in err and "tokens/s" in err
    for how in ("--prompt-lookup-num-tokens=3", f"--assistant-model={folder / 'lm.pipeline'}"):
        assert generate.main([*args, how]) == 0
        drafted = capsys.readouterr()
        assert drafted.out == out and "tokens of drafts taken" in drafted.err
    drawn = []
    for _ in range(2):
        assert generate.main([*args, "--do-sample", "--top-k=0", "--temperature=3", "--seed=5"]) == 0
        drawn.append(capsys.readouterr().out)
    assert drawn[0] == drawn[1] != out


def test_the_driver_compiles_a_checkpoint(saved, tmp_path, capsys):
    folder, expected = saved
    small_model("llama").save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_bytes((folder / "tokenizer.json").read_bytes())
    made = tmp_path / "made.pipeline"
    assert generate.main([str(tmp_path), "--max-length=64", "--num-beams=2", "-o", str(made)]) == 0
    assert generate.main([str(made), "--prompt", text_of(expected[0, :7]), "--max-new-tokens", "20"]) == 0
    assert capsys.readouterr().out.split() == text_of(expected[0, 7:]).split()
    args = [str(made), "--prompt", text_of(expected[0, :7]), "--max-new-tokens=9", "--num-beams=2"]
    assert generate.main(args) == 0
    out, err = capsys.readouterr()
    model = small_model("llama")
    best = eager(model, torch.tensor(expected[:, :7]), max_new_tokens=9, num_beams=2)
    assert out.split() == text_of(best[0, 7:].tolist()).split() and "tokens" in err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["missing.pipeline", "--prompt=w1"], "there is no such file"),
        (["lm.pipeline"], "says neither --prompt"),
        (["lm.pipeline", "--prompt="], "has no tokens"),
        (["lm.pipeline", "--prompt=w1", "--temperature=0"], "temperature: expected a number above 0"),
        (["tokenizer.json", "--prompt=w1"], "no artifact"),
        (["folder", "--prompt=w1"], "transformers cannot load it"),
    ],
)
def test_the_driver_says_what_is_wrong(saved, monkeypatch, capsys, args, message):
    folder, _ = saved
    (folder / "folder").mkdir(exist_ok=True)
    monkeypatch.chdir(folder)
    try:
        code = generate.main(args)
    except SystemExit as stopped:
        code = stopped.code
    assert code == 1
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert message in line
