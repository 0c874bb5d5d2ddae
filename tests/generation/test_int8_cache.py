"""A cache of bytes: what its numbers err by, that nothing of it is copied, and all that goes on from it."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from generation.small_models import attending_model, prompt, small_model
from generation.test_cache_in_place import in_buffers
from updates.support import remarks

import pipeline
from pipeline import CaptureError, OptionError
from pipeline.frontend.generation.quantized_slots import quantized

SLOTS = 112

#: What logits err by at most with a cache of bytes, as a part of the largest one: keys and values by 1/254 of theirs.
BOUND = 0.03


@pytest.fixture(scope="module")
def llama():
    model = small_model("llama")
    return model, pipeline.generation.compile(model, max_length=SLOTS, batch=2, kv_cache="int8")


def test_a_byte_is_off_by_half_a_scale():
    numbers = torch.randn(3, 8, 40, generator=torch.Generator().manual_seed(0)) * torch.logspace(-44, 38, 40)
    numbers[1, :, 7] = 0
    numbers[2, 3] = 0
    for dim, wide in ((1, numbers), (2, numbers.transpose(1, 2)), (2, numbers.transpose(1, 2).bfloat16())):
        scales, elements = quantized(wide, dim)
        assert elements.dtype == torch.int8 and elements.abs().max() == 127
        back = elements.double() * scales.double().unsqueeze(dim)
        allowed = 0.5001 * scales.double().unsqueeze(dim)
        assert ((back - wide.double()).abs() <= allowed).all()
        assert (back[wide == 0] == 0).all() and (scales > 0).all()


def teacher_forced(lm, ids, mask, count):
    """The logits after each of the last `count` tokens, as steps give them."""
    padding = (mask == 0).sum(1)
    first = ids.shape[1] - count
    logits = [lm.prefill(ids[:, :first], padding)]
    steps = range(first + 1, ids.shape[1] + 1)
    logits += [lm.decode(ids[:, end - 1 : end], padding, torch.arange(end)) for end in steps]
    return torch.stack(logits, 1)


@pytest.mark.parametrize(("shared_heads", "window", "dtype"), [(1, 9, torch.float32), (4, None, torch.bfloat16)])
def test_logits_and_tokens_are_near(shared_heads, window, dtype):
    model = attending_model(shared_heads, window, dtype)
    lm = pipeline.generation.compile(model, max_length=SLOTS, batch=2, kv_cache="int8")
    exact = pipeline.generation.compile(model, max_length=SLOTS, batch=2)
    width = 2 * shared_heads * 2 * SLOTS
    assert lm.cache_bytes == width * (8 + 4) and exact.cache_bytes == width * 8 * dtype.itemsize
    ids = prompt(2, 60)
    mask = torch.ones_like(ids)
    mask[1, :5] = 0
    got, wanted = (teacher_forced(one, ids, mask, 40) for one in (lm, exact))
    assert torch.equal(got[:, 0], wanted[:, 0])  # a prompt attends to what it has computed
    assert (got - wanted).abs().max() <= BOUND * wanted.abs().max()
    tokens = lm.generate(ids[:, :20], mask[:, :20], max_new_tokens=60)
    whole = torch.nn.functional.pad(mask[:, :20], (0, 60), value=1)
    judge = model.double()
    logits = judge(tokens, attention_mask=whole, position_ids=(whole.cumsum(-1) - 1).clamp(min=0)).logits[:, 19:-1]
    chosen = logits.gather(-1, tokens[:, 20:, None])[..., 0]
    margins = logits.topk(2).values
    allowed = 2 * BOUND * logits.abs().max()
    assert (logits.amax(-1) - chosen <= allowed).all()
    assert ((margins[..., 0] - margins[..., 1]) > allowed).float().mean() > 0.2  # or the test would say little


def test_the_cache_holds_what_the_model_computes(llama):
    model, lm = llama
    ids = prompt(2, 12)
    lm.generate(ids, max_new_tokens=1)
    found = {name: buffer.clone() for name, buffer in lm.buffers.items()}
    cache = model(ids, use_cache=True).past_key_values
    for layer in (0, 1):
        of_layer = {"keys": cache.layers[layer].keys, "values": cache.layers[layer].values}
        for kind, states in of_layer.items():
            scales = found[f"cache.{kind}_{layer}_scale"][:, :12, None]
            elements = found[f"cache.{kind}_{layer}"]
            slots = (elements.transpose(1, 2) if kind == "keys" else elements)[:, :12]
            assert ((slots * scales - states.flatten(0, 1)).abs() <= 0.51 * scales).all()
    assert not any(buffer[..., 12:].any() for name, buffer in found.items() if "keys" in name or "scale" in name)


def test_nothing_of_it_is_copied_or_made_wider(llama):
    """Attention reads bytes; of what is allocated, a mask and scores alone grow with the slots that are filled."""
    _, lm = llama
    for exe in (lm.decode, lm.extend, lm.prefill):
        assert [kind for kind, _ in remarks(exe)] == ["passed"] * 8, remarks(exe)
        text = in_buffers(exe)
        assert not re.search(rf"memref.copy .*: memref<[^,]*\b{SLOTS}[x>].* to", text)
        assert not re.search(rf"memref.alloc\(.*: memref<[\dx?]*\b{SLOTS}x", text)
    text = in_buffers(lm.decode)
    growing = re.findall(r"memref.alloc\(.*: memref<(.*\?.*)>", text)
    assert growing and not [shape for shape in growing if "8" in re.split("x", shape)[:-1]]  # a head is 8 wide
    attention = [kernel for kernel in lm.decode.kernels if kernel.name.endswith("softmax_mul_matmul")]
    assert [kernel.calls for kernel in attention] == [2]
    kernel = next(part for part in lm.decode.ir("kernels").split("func.func") if f"@{attention[0].name}(" in part)
    assert len(re.findall(r"sitofp .* : i8 to f32", kernel)) == 2 and not re.search(r"\?x8xf32|8x\?xf32", kernel)


def test_all_that_goes_on_from_it(llama, tmp_path):
    _, lm = llama
    ids = prompt(1, 30)
    alone = lm.generate(ids, max_new_tokens=50)
    assert torch.equal(lm.generate(ids, max_new_tokens=50, reuse_cache=True)[:, :31], alone[:, :31])
    assert lm.reused == 29
    drafted = lm.generate(ids, max_new_tokens=50, prompt_lookup_num_tokens=4)
    assert lm.drafted and torch.equal(drafted, alone)
    places = [buffer.data_ptr() for buffer in lm.buffers.values()]
    best = lm.generate(ids, max_new_tokens=12, num_beams=2)
    assert places == [buffer.data_ptr() for buffer in lm.buffers.values()]
    lm.save(tmp_path / "lm.pipeline")
    loaded = pipeline.generation.load(tmp_path / "lm.pipeline")
    assert loaded.cache_bytes == lm.cache_bytes and np.array_equal(loaded.generate(ids, max_new_tokens=50), alone)
    assert np.array_equal(loaded.generate(ids, max_new_tokens=12, num_beams=2), best)


def test_beams_take_their_scales_along(llama):
    """A row of the cache is that of the best text when its tokens are taken one by one."""
    _, lm = llama
    ids = prompt(1, 9)
    best = lm.generate(ids, max_new_tokens=24, num_beams=2)
    cached = {name: buffer.clone() for name, buffer in lm.buffers.items()}
    lm.generate(best[:, :9], max_new_tokens=1)
    for end in range(10, 33):
        lm.decode(best[:, end - 1 : end].repeat(2, 1), torch.zeros(2, dtype=torch.int64), torch.arange(end))
    for name, buffer in lm.buffers.items():
        alone, beams = (one.unflatten(0, (2, -1)).float() for one in (buffer, cached[name]))
        filled = (lambda part: part[..., :20]) if "keys" in name or "scale" in name else (lambda part: part[:, :20])
        assert min((filled(row) - filled(alone[0])).abs().max() for row in beams) <= (
            1 if "scale" not in name else 1e-4
        )


def test_weights_in_bytes_and_products_of_bf16_read_it(llama):
    model, _ = llama
    ids = prompt(1, 20)
    for options in ({"precision": "bf16"}, {"weights": "int8"}):
        lm = pipeline.generation.compile(model, max_length=64, kv_cache="int8", **options)
        exact = pipeline.generation.compile(model, max_length=64, **options)
        got, wanted = (teacher_forced(one, ids, torch.ones_like(ids), 12) for one in (lm, exact))
        assert (got - wanted).abs().max() <= 2 * BOUND * wanted.abs().max()
        text = in_buffers(lm.decode)
        assert not re.search(r"memref.alloc\(.*: memref<[\dx?]*(\?x8|8x\?)x", text)


def test_what_is_refused(llama):
    with pytest.raises(OptionError, match="kv_cache: expected one of model, int8, got 'int4'"):
        pipeline.generation.compile(llama[0], max_length=64, kv_cache="int4")


def test_models_that_compute_with_what_is_cached_are_refused():
    with pytest.raises(CaptureError, match=r"computes with the keys or values .* \(linear\), .* kv_cache='int8'"):
        pipeline.generation.compile(small_model("deepseek_v2"), max_length=SLOTS, kv_cache="int8")
