"""A step writes to the cache where it is, and moves no more than the new token's keys and values."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import torch
from generation.small_models import attending_model, eager, prompt, small_model
from updates.support import remarks

import pipeline
from pipeline.mlir import context, parse
from pipeline.passmanager.pass_pipeline import PassPipeline

SLOTS = 240


@pytest.fixture(scope="module")
def llama():
    model = small_model("llama")
    return model, pipeline.generation.compile(model, max_length=SLOTS, cache=False)


def in_buffers(exe):
    """Its IR once it has buffers."""
    until_then, found, _ = exe.passes.partition(",profile-kernels,")
    assert found
    module = parse(exe.ir("linalg"), context())
    PassPipeline.parse(f"{until_then})").run(module)
    return str(module)


def test_nothing_of_the_cache_is_copied(llama):
    _, lm = llama
    for exe in (lm.prefill, lm.decode):
        assert [kind for kind, _ in remarks(exe)] == ["passed"] * 4, remarks(exe)
        text = in_buffers(exe)
        assert not re.search(rf"memref.copy .*x{SLOTS}[x>].* to", text)
    assert sum(kernel.calls for kernel in lm.decode.kernels if kernel.name.startswith("attention")) == 2
    # What a step allocates is a mask, and a number for each of the four heads and each slot, before and after softmax.
    allocated = re.findall(r"memref.alloc\(.*: memref<(.*\?.*)>", text)
    assert 0 < len(allocated) <= 5 and set(allocated) <= {"1x?xi1", "1x2x2x1x?xf32", "2x2x?xf32"}


def moved_to_the_cache(text):
    """How many bytes the copies move whose target begins where the number of filled slots says."""
    copies = re.findall(r"memref.copy .* : memref<([\dx]+)x(f32|bf16)> to memref<.*strided<.*, offset: \?>", text)
    return sum(math.prod(map(int, shape.split("x"))) * {"f32": 4, "bf16": 2}[kind] for shape, kind in copies)


@pytest.mark.parametrize(
    ("batch", "shared_heads", "window", "dtype"),
    [
        (1, 4, 9, torch.bfloat16),
        (2, 2, None, torch.float32),
        (5, 1, 9, torch.float32),
        (16, 2, 9, torch.bfloat16),
        (16, 4, None, torch.float32),
    ],
)
def test_a_step_moves_its_token_alone(batch, shared_heads, window, dtype):
    """However many rows: no copy, nor memory for one, grows with the slots that are filled."""
    model = attending_model(shared_heads, window, dtype)
    lm = pipeline.generation.compile(model, max_length=SLOTS, batch=batch, cache=False)
    text = in_buffers(lm.decode)
    assert not re.findall(rf"memref.copy .*: memref<[\dx]*(?:\?|{SLOTS}x).* to", text)
    growing = re.findall(r"memref.alloc\(.*: memref<(.*\?.*)>", text)
    assert growing and not [shape for shape in growing if "8" in re.split("x", shape)[:-1]]  # a head is 8 wide
    assert moved_to_the_cache(text) == 2 * batch * shared_heads * 8 * dtype.itemsize
    ids = prompt(batch, 12)
    mask = (torch.arange(12) >= torch.arange(batch)[:, None] % 5).long()
    tokens = lm.generate(ids, mask, max_new_tokens=20)
    if dtype == torch.float32:
        assert torch.equal(tokens, eager(model, ids, attention_mask=mask, max_new_tokens=20))
    assert_likely(model, tokens, mask)


def assert_likely(model, tokens, mask):
    """Each new token is the likeliest of those before it, up to the rounding of the model's type."""
    whole = torch.nn.functional.pad(mask, (0, tokens.shape[1] - mask.shape[1]), value=1)
    positions = (whole.cumsum(-1) - 1).clamp(min=0)
    logits = model(tokens, attention_mask=whole, position_ids=positions).logits.float()[:, mask.shape[1] - 1 : -1]
    chosen = logits.gather(-1, tokens[:, mask.shape[1] :, None])[..., 0]
    allowed = 4 * torch.finfo(model.dtype).eps * logits.abs().amax()
    assert (logits.amax(-1) - chosen <= allowed).all()


def test_the_cache_stays_where_it_is(llama):
    model, lm = llama
    buffers = lm.buffers
    assert list(buffers) == [f"cache.{kind}_{layer}" for layer in (0, 1) for kind in ("keys", "values")]
    places = [buffer.data_ptr() for buffer in buffers.values()]
    assert places == [buffer.data_ptr() for buffer in lm.prefill.buffers.values()]
    ids = prompt(1, 12)
    lm.generate(ids, max_new_tokens=5)
    filled = [buffer.clone() for buffer in lm.buffers.values()]
    cache = model(ids, use_cache=True).past_key_values
    for layer in (0, 1):
        torch.testing.assert_close(filled[2 * layer][:, :, :12], cache.layers[layer].keys[0].transpose(1, 2))
        torch.testing.assert_close(filled[2 * layer + 1][:, :12], cache.layers[layer].values[0])
    assert not any(buffer[:, 16:].any() for buffer in filled[1::2])  # the last token is not in it
    next(lm.stream(ids[:, :3], max_new_tokens=1))
    for before, now in zip(filled, lm.buffers.values(), strict=True):
        changed = (before != now).any(0).any(0 if now.shape[2] == SLOTS else 1)
        assert not changed[3:].any()
    assert places == [buffer.data_ptr() for buffer in lm.buffers.values()]
    lm.reset()
    assert not any(buffer.any() for buffer in lm.buffers.values())
    assert torch.equal(lm.generate(ids, max_new_tokens=9), eager(model, ids, max_new_tokens=9))


def test_weights_that_change_are_seen(llama):
    model, lm = llama
    ids = prompt(1, 6)
    before = lm.generate(ids, max_new_tokens=20)
    weight = model.lm_head.weight
    kept = weight.clone()
    with torch.no_grad():
        weight.copy_(weight.flip(0))
    assert torch.equal(lm.generate(ids, max_new_tokens=20), eager(model, ids, max_new_tokens=20))
    with torch.no_grad():
        weight.copy_(kept)
    assert np.array_equal(lm.generate(ids, max_new_tokens=20), before)


@pytest.mark.parametrize(
    ("batch", "shared_heads", "window", "dtype"), [(1, 2, None, torch.float32), (3, 1, 9, torch.bfloat16)]
)
def test_a_prompt_that_goes_on_moves_its_tokens_alone(batch, shared_heads, window, dtype):
    """Of what is allocated, masks and scores alone grow with the slots that are filled; places stay."""
    lm = pipeline.generation.compile(attending_model(shared_heads, window, dtype), max_length=SLOTS, batch=batch)
    places = [buffer.data_ptr() for buffer in lm.buffers.values()]
    assert [buffer.data_ptr() for buffer in lm.extend.buffers.values()] == places
    assert [kind for kind, _ in remarks(lm.extend)] == ["passed"] * 2, remarks(lm.extend)
    text = in_buffers(lm.extend)
    assert not re.search(rf"memref.copy .*: memref<[^,]*\b{SLOTS}[x>].* to", text)
    moved = re.findall(r"memref.copy .* : memref<([\dx?]+)x\w+> to memref<.*strided<.*, offset: \?>", text)
    heads = batch * shared_heads
    assert sorted(moved) == sorted([f"{heads}x?x8", f"{heads}x8x?"])  # of as many tokens as are new
    (main,) = (part for part in text.split("func.func") if "memref.copy" in part and "offset: ?>" in part)
    allocated = re.findall(r"memref.alloc\(([^)]*)\).*: memref<([\dx?]+)x\w+>", main)
    lengths = [sizes.split(", ")[1] for sizes, _ in allocated if ", " in sizes]
    of_slots = [shape for sizes, shape in allocated if sizes.split(", ")[-1] in lengths]
    assert of_slots and all(shape.count("?") == 2 and "8" not in shape.split("x") for shape in of_slots)
    ids = prompt(batch, 36)
    lm.generate(ids[:, :12], max_new_tokens=1)
    before = [buffer.clone() for buffer in lm.buffers.values()]
    lm.generate(ids, max_new_tokens=1, reuse_cache=True)
    assert lm.reused == 12
    for old, new in zip(before, lm.buffers.values(), strict=True):
        changed = (old != new).any(0).any(0 if new.shape[2] == SLOTS else 1)
        assert changed[12:36].all() and not changed[:12].any() and not changed[36:].any()
