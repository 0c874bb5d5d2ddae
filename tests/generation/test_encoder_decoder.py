"""Models with an encoder: tokens of eager mode, a source that is read once, one cache, files."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
import transformers as tf
from generation.small_models import VOCABULARY, prompt
from generation.test_cache_in_place import in_buffers
from host import DOTS
from tokenizers import Tokenizer, models, pre_tokenizers
from updates.support import remarks

import pipeline
from pipeline import ArgumentError, OptionError
from pipeline.frontend.generation.quantized_slots import quantized
from pipeline.tools import generate

SLOTS, SOURCE = 224, 48


def small_t5():
    torch.manual_seed(0)
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "vocab_size": VOCABULARY}
    tokens = {"eos_token_id": None, "decoder_start_token_id": 0, "pad_token_id": 0}
    config = tf.T5Config(**sizes, **tokens, feed_forward_proj="gated-gelu")
    return varied(tf.T5ForConditionalGeneration(config))


def small_bart():
    torch.manual_seed(0)
    sizes = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 2, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48}
    heads = {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "max_position_embeddings": 256}
    tokens = {"eos_token_id": None, "forced_eos_token_id": None, "decoder_start_token_id": 2, "pad_token_id": 1}
    config = tf.BartConfig(**sizes, **heads, **tokens, vocab_size=VOCABULARY, bos_token_id=0)
    return varied(tf.BartForConditionalGeneration(config))


def varied(model):
    """In evaluation; with weights so large, and others for the logits than for the tokens, that tokens vary."""
    model.eval().requires_grad_(False)
    for name, parameter in model.named_parameters():
        if parameter.ndim > 1:
            parameter.normal_(0, 1 if "shared" in name or "relative" in name else 0.5)
    model.lm_head.weight = torch.nn.Parameter(torch.randn(VOCABULARY, 32), requires_grad=False)
    return model


def sources(rows, length):
    """Tokens and a mask, with padding behind some rows."""
    ids = prompt(rows, length)
    mask = (torch.arange(length) < length - 2 * torch.arange(rows)[:, None]).long()
    return ids * mask, mask


@pytest.fixture(scope="module")
def t5():
    model = small_t5()
    return model, pipeline.generation.compile(model, SLOTS, max_source_length=SOURCE, batch=4)


def test_tokens_are_those_of_eager_mode(t5):
    model, lm = t5
    assert (lm.max_length, lm.max_source_length, lm.batch) == (SLOTS, SOURCE, 4)
    for rows, length, count in ((3, 13, 200), (1, 1, 9), (4, 48, 30), (1, 2, 0)):
        ids, mask = sources(rows, length)
        got = lm.generate(ids, mask, max_new_tokens=count)
        if count:
            assert torch.equal(got, model.generate(ids, attention_mask=mask, max_new_tokens=count)), (rows, length)
        assert got.shape == (rows, 1 + count) and (got[:, 0] == 0).all()
        assert count < 20 or len(set(got[0].tolist())) > 5
    streamed = np.stack(list(lm.stream(ids, max_new_tokens=7)), 1)
    assert np.array_equal(streamed, lm.generate(ids, max_new_tokens=7)[:, 1:])


def test_draws_beams_and_ends(t5):
    model, lm = t5
    ids, mask = sources(2, 9)
    plain = model.generate(ids, attention_mask=mask, max_new_tokens=30)
    ends = {"eos_token_id": int(plain[0, 7]), "pad_token_id": 0}
    for settings in (
        {"do_sample": True, "top_k": 20, "temperature": 1.5},
        {"repetition_penalty": 1.3},
        {"num_beams": 2},
        {"num_beams": 2, **ends},
        {"num_beams": 2, "num_return_sequences": 2, **ends},
        {"do_sample": True, "num_return_sequences": 2},
        ends,
    ):
        found = []
        for run in (lm.generate, model.generate):
            torch.manual_seed(7)
            found.append(run(ids, attention_mask=mask, max_new_tokens=30, **settings))
        assert torch.equal(*found), settings


def test_a_step_moves_its_token_alone_and_encodes_nothing(t5):
    _, lm = t5
    assert [kind for kind, _ in remarks(lm.decode)] == ["passed"] * 4
    assert [kind for kind, _ in remarks(lm.prefill)] == ["passed"] * 8
    assert list(lm.buffers) == [f"cache.{kind}_{layer}" for layer in (0, 1) for kind in ("keys", "values")]
    text = in_buffers(lm.decode)
    assert not re.search(rf"memref.copy .*: memref<[^,]*\b({SLOTS}|{SOURCE})[x>].* to", text)
    growing = re.findall(r"memref.alloc\(.*: memref<(.*\?.*)>", text)
    assert not [shape for shape in growing if "8" in re.split("x", shape)[:-1]]  # a head is 8 wide
    assert not encoder_weights_read(lm.decode)
    assert len(encoder_weights_read(lm.prefill)) > 20


def encoder_weights_read(exe):
    """Those of the encoder, and of the products that make keys and values of what it gives."""
    text = exe.ir("linalg")
    names = dict(re.findall(r'(%arg\d+): [^%]*pipeline.weight = "model\.([^"]*)"', text))
    encoder = [arg for arg, name in names.items() if re.match(r"encoder\.|.*EncDecAttention\.[kv]\.", name)]
    assert len(encoder) > 20
    return [arg for arg in encoder if len(re.findall(rf"{arg}\b", text)) > 1]


def teacher_forced(lm, ids, mask, text):
    """The logits after each token of a text, f32[rows, tokens, vocabulary], as steps give them."""
    rows = [[*range(len(ids)), *[0] * (lm.batch - len(ids))]]  # those that nobody asked for are like the first one
    ids, mask, text = (tensor[rows] for tensor in (ids, mask, text))
    logits = [lm.prefill(ids, mask, text[:, :1])]
    logits += [lm.decode(text[:, end : end + 1], torch.arange(end + 1), mask) for end in range(1, text.shape[1])]
    return torch.stack(logits, 1)


class RoundedCache(tf.DynamicCache):
    """Keeps keys and values as bytes stand for them; the first that come are read as they were computed."""

    def update(self, key_states, value_states, layer_idx, *args, **kwargs):
        is_first = self.get_seq_length(layer_idx) == 0
        rounded = [
            elements * scales[..., None] for scales, elements in (quantized(x, 3) for x in (key_states, value_states))
        ]
        found = super().update(*rounded, layer_idx)
        return (key_states, value_states) if is_first else found


def test_keys_and_values_of_both_texts_in_bytes(t5):
    model, exact = t5
    lm = pipeline.generation.compile(model, SLOTS, max_source_length=SOURCE, batch=4, kv_cache="int8")
    rows = 4 * 4  # of heads
    assert lm.cache_bytes == 2 * 2 * rows * SLOTS * (8 + 4) and exact.cache_bytes == 2 * 2 * rows * SLOTS * 8 * 4
    ids, mask = sources(2, 13)
    text = model.generate(ids, attention_mask=mask, max_new_tokens=30)
    cache = tf.EncoderDecoderCache(RoundedCache(), RoundedCache())
    encoded = model.encoder(input_ids=ids, attention_mask=mask)
    wanted = [
        model(
            encoder_outputs=encoded, attention_mask=mask, decoder_input_ids=text[:, place, None], past_key_values=cache
        ).logits[:, -1]
        for place in range(text.shape[1])
    ]
    wanted, got = torch.stack(wanted, 1), teacher_forced(lm, ids, mask, text)[:2]
    assert (got - wanted).norm() <= 1e-3 * wanted.norm()
    assert (wanted - teacher_forced(exact, ids, mask, text)[:2]).norm() > 1e-2 * wanted.norm()
    assert [kind for kind, _ in remarks(lm.decode)] == ["passed"] * 8  # bytes and scales
    assert not re.search(rf"memref.copy .*: memref<[^,]*\b({SLOTS}|{SOURCE})[x>].* to", in_buffers(lm.decode))
    assert lm.generate(ids, mask, max_new_tokens=9, num_beams=2).shape == (2, 10)


def test_products_of_bytes():
    """Weights and data rounded to bytes: each is off by half a step of its row or column."""
    torch.manual_seed(0)
    sizes = {"d_model": 128, "d_kv": 32, "d_ff": 192, "num_layers": 1, "num_heads": 4, "vocab_size": VOCABULARY}
    config = tf.T5Config(
        **sizes, eos_token_id=None, decoder_start_token_id=0, pad_token_id=0, tie_word_embeddings=False
    )
    model = tf.T5ForConditionalGeneration(config).eval().requires_grad_(False)
    lm = pipeline.generation.compile(model, 32, max_source_length=32, weights="int8", activations="int8")
    for entry in (lm.prefill, lm.decode):
        said = [one for one in entry.remarks if one.pass_name == "contract-in-int8"]
        passed = sum(one.kind == "passed" for one in said)
        assert passed >= 7 if DOTS else passed == 0
    ids, mask = sources(1, 13)
    text = model.generate(ids, attention_mask=mask, max_new_tokens=15)
    got = teacher_forced(lm, ids, mask, text)
    wanted = model(input_ids=ids, attention_mask=mask, decoder_input_ids=text).logits
    assert 1e-4 < (got - wanted).norm() / wanted.norm() < 0.03
    tokens = lm.generate(ids, mask, max_new_tokens=20)
    assert np.array_equal(np.stack(list(lm.stream(ids, mask, max_new_tokens=20)), 1), tokens[:, 1:])


def test_a_saved_model_forgets_and_reads_other_sources(t5, tmp_path):
    _, lm = t5
    found = []
    for length in (13, 5, 13):
        ids, mask = sources(3, length)
        found.append((ids, mask, lm.generate(ids, mask, max_new_tokens=20)))
    lm.save(tmp_path / "lm.pipeline")
    loaded = pipeline.generation.load(tmp_path / "lm.pipeline")
    assert not any(buffer.any() for buffer in loaded.prefill.buffers.values())
    assert loaded.max_source_length == SOURCE
    for ids, mask, expected in found:
        assert np.array_equal(loaded.generate(ids.numpy(), mask.numpy(), max_new_tokens=20), expected)


def test_bart():
    model = small_bart()
    lm = pipeline.generation.compile(model, 64, batch=2)
    ids, mask = sources(2, 11)
    for settings in ({}, {"num_beams": 1, "do_sample": True}):
        found = []
        for run in (lm.generate, model.generate):
            torch.manual_seed(7)
            found.append(run(ids, attention_mask=mask, max_new_tokens=50, **settings))
        assert torch.equal(*found)
    with pytest.raises(OptionError, match="max_source_length: the model has 256 positions, 500 are too many"):
        pipeline.generation.compile(model, 64, max_source_length=500)


@pytest.mark.parametrize("setting", ["encoder_no_repeat_ngram_size", "encoder_repetition_penalty"])
def test_tokens_of_the_source_are_treated_otherwise(t5, setting):
    model, lm = t5
    ids, mask = sources(2, 9)
    changed = 0
    for how in ({}, {"num_beams": 2}):
        settings = {"max_new_tokens": 20, **how}
        plain = lm.generate(ids, mask, **settings)
        settings[setting] = 1 if setting.endswith("size") else 1.7
        found = lm.generate(ids, mask, **settings)
        assert torch.equal(found, model.generate(ids, attention_mask=mask, **settings))
        changed += not torch.equal(found, plain)
    assert changed  # or tokens of the source are none that would come


@pytest.mark.parametrize("how", [{}, {"num_beams": 2}], ids=str)
def test_scores_of_steps(t5, how):
    model, lm = t5
    ids, mask = sources(2, 9)
    settings = {"max_new_tokens": 6, "return_dict_in_generate": True, "output_scores": True, **how}
    found, expected = lm.generate(ids, mask, **settings), model.generate(ids, attention_mask=mask, **settings)
    assert torch.equal(found.sequences, expected.sequences)
    for scores, others in zip(found.scores, expected.scores, strict=True):
        torch.testing.assert_close(scores, others, rtol=1e-4, atol=1e-4)


def test_the_driver_compiles_a_checkpoint(t5, tmp_path, capsys):
    model, lm = t5
    model.save_pretrained(tmp_path)
    words = Tokenizer(models.WordLevel({f"w{number}": number for number in range(VOCABULARY)}, unk_token="w0"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.save(str(tmp_path / "tokenizer.json"))
    ids, _ = sources(1, 9)
    text = " ".join(f"w{token}" for token in ids[0].tolist())
    args = [str(tmp_path), "--max-length=48", "--num-beams=2", "--prompt", text, "--max-new-tokens=9"]
    assert generate.main(args) == 0
    best = lm.generate(ids, num_beams=2, max_new_tokens=9)[0, 1:].tolist()
    assert capsys.readouterr().out.split() == [f"w{token}" for token in best]


def test_what_is_refused(t5):
    model, lm = t5
    ids, mask = sources(2, 9)
    for name, value in (("reuse_cache", True), ("prompt_lookup_num_tokens", 3), ("prefill_chunk_size", 4)):
        with pytest.raises(OptionError, match=f"{name}: is not there for models with an encoder"):
            lm.generate(ids, **{name: value})
    with pytest.raises(OptionError, match="assistant_model"):
        lm.generate(ids, assistant_model=lm)
    with pytest.raises(OptionError, match="kv_cache: expected one of model, int8, got 'int4'"):
        pipeline.generation.compile(model, 64, kv_cache="int4")
    with pytest.raises(ArgumentError, match="a row has no tokens"):
        lm.generate(ids, mask * 0)
    with pytest.raises(ArgumentError, match="49 tokens are more than the model was compiled for"):
        lm.generate(prompt(1, 49))
    with pytest.raises(ArgumentError, match="2 rows of 3 texts each"):
        lm.generate(ids, num_beams=3)
