"""Language models that take and return their caches of keys and values."""

from __future__ import annotations

import pytest
import torch

import pipeline
from pipeline import ArgumentError, CaptureError

transformers = pytest.importorskip("transformers")

_SMALL = {"vocab_size": 64, "bos_token_id": 0, "eos_token_id": 0}
_HIDDEN = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}


def llama(**options):
    kind = "Mistral" if "sliding_window" in options else "Llama"
    config = getattr(transformers, f"{kind}Config")(num_key_value_heads=1, **_SMALL, **_HIDDEN, **options)
    return getattr(transformers, f"{kind}ForCausalLM")(config).eval()


def gpt2():
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(n_embd=16, n_layer=2, n_head=2, **_SMALL)).eval()


@pytest.fixture(autouse=True)
def _inference():
    torch.manual_seed(0)
    with torch.no_grad():
        yield


def compare(got, expected):
    torch.testing.assert_close(got.logits, expected.logits, rtol=1e-4, atol=1e-5)
    for ours, theirs in zip(got.past_key_values, expected.past_key_values, strict=True):
        torch.testing.assert_close(ours[:2], theirs[:2], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("create", [llama, gpt2])
def test_a_prompt_and_a_step(create, tmp_path):
    """The cache that the first call returns goes into the second, and into transformers itself."""
    model = create()
    prompt, token = torch.randint(0, 64, (1, 5)), torch.randint(0, 64, (1, 1))
    first = pipeline.compile(model, (prompt,))
    got = first(prompt)
    assert type(got.past_key_values) is transformers.DynamicCache
    compare(got, model(prompt))
    cached = {"past_key_values": model(prompt).past_key_values}
    second = pipeline.compile(model, (token,), cached)
    step = second(token, past_key_values=got.past_key_values)
    compare(step, model(token, past_key_values=model(prompt).past_key_values))
    assert got.past_key_values.get_seq_length() == 5 and step.past_key_values.get_seq_length() == 6
    compare(model(token, past_key_values=got.past_key_values), step)
    second.save(tmp_path / "step.pipeline")
    again = pipeline.load(tmp_path / "step.pipeline")(token, past_key_values=first(prompt).past_key_values)
    assert torch.equal(again.logits, step.logits)
    with pytest.raises(ArgumentError, match="expected a DynamicCache of 2 layers"):
        second(token, past_key_values=transformers.DynamicCache())


def test_torch_compile():
    model = llama()
    prompt = torch.randint(0, 64, (1, 5))
    compare(torch.compile(model, backend="pipeline")(prompt), model(prompt))


def test_caches_with_windows_are_refused():
    with pytest.raises(CaptureError, match="DynamicSlidingWindowLayer are not supported; call it with use_cache=False"):
        pipeline.compile(llama(sliding_window=4), (torch.randint(0, 64, (1, 5)),))
