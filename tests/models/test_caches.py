"""Language models that take and return their caches of keys and values."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.utils._pytree as pytree

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


@pytest.mark.parametrize("length", [3, 7])
def test_windows(length, tmp_path):
    """A prompt that is shorter than the window, and one that is longer."""
    model = llama(sliding_window=4)
    prompt, token = torch.randint(0, 64, (1, length)), torch.randint(0, 64, (1, 1))
    got, expected = pipeline.compile(model, (prompt,))(prompt), model(prompt)
    compare(got, expected)
    second = pipeline.compile(model, (token,), {"past_key_values": expected.past_key_values})
    step = second(token, past_key_values=got.past_key_values)
    further = {"past_key_values": copy.deepcopy(step.past_key_values)}
    compare(step, model(token, past_key_values=expected.past_key_values))
    assert step.past_key_values.get_seq_length() == length + 1
    compare(model(token, **further), model(token, past_key_values=step.past_key_values))
    with pytest.raises(ArgumentError, match=rf"cumulative_lengths\[0\]: the model was compiled for {length}, got"):
        second(token, past_key_values=step.past_key_values)
    with pytest.raises(ArgumentError, match=r"expected a DynamicCache whose layers have the windows \(4, 4\)"):
        second(token, past_key_values=llama()(prompt).past_key_values)


def test_windows_of_symbolic_length():
    model = llama(sliding_window=4)
    sizes = ({0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.AUTO},)
    compiled = pipeline.compile(model, (torch.randint(0, 64, (3, 7)),), dynamic_shapes=sizes)
    for rows, length in ((2, 3), (1, 4), (2, 5), (4, 9)):
        prompt = torch.randint(0, 64, (rows, length))
        got = compiled(prompt)
        compare(got, model(prompt))
        assert [layer.cumulative_length for layer in got.past_key_values.layers] == [length, length]


def test_caches_are_taken_apart_by_pytree():
    """What the compiler tells torch of caches holds for the whole process, so any cache can be taken apart."""
    model = llama(sliding_window=4)
    prompt = torch.randint(0, 64, (1, 5))
    pipeline.compile(model, (prompt,))
    cache = model(prompt).past_key_values
    leaves, spec = pytree.tree_flatten(cache)
    assert leaves[-2:] == [5, 5]
    again = pytree.tree_unflatten(leaves, spec)
    assert again.get_seq_length() == 5 and again.layers[0].keys is cache.layers[0].keys
    cache.layers.append(transformers.cache_utils.DynamicIndexedLayer())
    leaves, spec = pytree.tree_flatten(cache)
    assert leaves == cache.layers and pytree.tree_unflatten(leaves, spec).layers == cache.layers
    with pytest.raises(CaptureError, match="call it with use_cache=False"):
        pipeline.compile(model, (prompt,), {"past_key_values": cache})
