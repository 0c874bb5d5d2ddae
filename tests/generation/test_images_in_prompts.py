"""Prompts with images or sounds: tokens of eager mode, what does not fit, files."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
import torch
import transformers as tf
from generation.models_with_inputs import DECODERS, IMAGE, LENGTH, model_with_inputs, rows
from generation.small_models import prompt, small_model, traced_one_by_one
from updates.support import remarks

import pipeline
from pipeline import ArgumentError, CaptureError, OptionError
from pipeline.frontend.generation.image_positions import ImagePositions
from pipeline.frontend.generation.inputs import ExampleInputs


def compiled(model, read, batch, max_length=96, **options):
    """From the second row, which has no padding."""
    return pipeline.generation.compile(model, max_length, batch=batch, inputs=rows(read, 1, 1), **options)


@pytest.fixture(scope="module")
def llava():
    model, read = model_with_inputs("llava")
    return model, read, compiled(model, read, batch=4)


@pytest.fixture(scope="module")
def qwen():
    """Positions in three directions, and two images of sizes that the code has."""
    model, read = model_with_inputs("qwen3_vl")
    return model, read, compiled(model, read, batch=4)


@pytest.mark.parametrize("name", DECODERS)
def test_tokens_are_those_of_eager_mode(name):
    """Two rows, of which one has padding; each alone; a text without an image behind them."""
    model, read = model_with_inputs(name)
    lm = compiled(model, read, batch=3)
    assert not traced_one_by_one(lm)
    seen = set()
    for first, count in ((0, 2), (0, 1), (1, 1)):
        given = rows(read, first, count)
        expected = model.generate(**given, max_new_tokens=20)
        assert torch.equal(lm.generate(**given, max_new_tokens=20), expected), (first, count)
        seen.update(expected[:, LENGTH:].flatten().tolist())
        text = prompt(2, 9)
        expected = model.generate(text, attention_mask=torch.ones_like(text), max_new_tokens=9)
        assert torch.equal(lm.generate(text, max_new_tokens=9), expected), "without"
    assert len(seen) > 6  # or the test would say little


def test_prompts_of_other_lengths_and_places(qwen):
    """Images further behind, and with more text between them, in rows of which each has them elsewhere."""
    model, read, lm = qwen
    for where in ((1, 9), (12, 33), (5, 19)):
        ids = prompt(2, LENGTH + 11)
        for row in range(2):
            ids[row, where[0] + row : where[0] + row + 4] = IMAGE
            ids[row, where[1] + 3 * row : where[1] + 3 * row + 2] = IMAGE
        given = read | {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        given["mm_token_type_ids"] = (ids == IMAGE).int()
        expected = model.generate(**given, max_new_tokens=9)
        assert torch.equal(lm.generate(**given, max_new_tokens=9), expected), where


def test_positions_are_those_of_the_model(qwen):
    """In three directions, of prompts with padding, with text in front and without."""
    model, read, _ = qwen
    positions = ImagePositions.of(model, ExampleInputs.of(rows(read, 1, 1), model.config))
    assert len(set(positions.offsets[1].tolist())) > 1 and int(positions.advances.sum()) == 2 + 2
    for first, second, padding in ((6, 20, (2, 0)), (3, 8, (0, 3)), (9, 50, (5, 1))):
        ids, mask = prompt(2, LENGTH), torch.ones(2, LENGTH, dtype=torch.int64)
        ids[:, first : first + 4], ids[:, second : second + 2] = IMAGE, IMAGE
        for row, count in enumerate(padding):
            mask[row, :count] = 0
        types = (ids == IMAGE).int()
        grid = read["image_grid_thw"]
        wanted, deltas = model.model.get_rope_index(ids, types, image_grid_thw=grid, attention_mask=mask)
        got = positions.of_prompt(ids, torch.tensor(padding))
        assert torch.equal(got * mask, wanted * mask) and set(deltas.flatten().tolist()) == {int(positions.shift)}


def test_beams_and_draws(qwen):
    model, read, lm = qwen
    for settings in (
        {"num_beams": 2},
        {"num_beams": 2, "num_return_sequences": 2},
        {"do_sample": True, "top_k": 20, "num_return_sequences": 2},
        {"repetition_penalty": 1.5},
    ):
        found = []
        for run in (lm.generate, model.generate):
            torch.manual_seed(3)
            found.append(run(**read, max_new_tokens=15, **settings))
        assert torch.equal(*found), settings
    streamed = np.stack(list(lm.stream(**read, max_new_tokens=7)), 1)
    assert np.array_equal(streamed, lm.generate(**read, max_new_tokens=7)[:, LENGTH:])


def test_a_prompt_does_not_go_on_from_another_image(llava):
    """The tokens are those in the cache, but what stands for the image is another one's."""
    model, read, lm = llava
    one = rows(read, 1, 1)
    whole = lm.generate(**one, max_new_tokens=9)
    longer = whole.clamp(max=IMAGE - 1)  # text where the image was
    for ids in (whole, longer, longer):
        mask = torch.ones_like(ids)
        expected = model.generate(ids, attention_mask=mask, max_new_tokens=5)
        assert torch.equal(lm.generate(ids, max_new_tokens=5, reuse_cache=True), expected)
        again = torch.cat([ids, expected[:, -5:]], 1)
        lm.generate(again, max_new_tokens=2, reuse_cache=True)
        assert lm.reused >= ids.shape[1] - 1
        lm.generate(**one, max_new_tokens=9)
        lm.generate(whole, max_new_tokens=1, reuse_cache=True)
        assert lm.reused == 0


def visual_weights_read(exe):
    """The weights of the part that looks at images."""
    text = exe.ir("linalg")
    names = dict(re.findall(r'(%arg\d+): [^%]*pipeline.weight = "model\.([^"]*)"', text))
    visual = [arg for arg, name in names.items() if "visual" in name]
    assert len(visual) > 20
    return [arg for arg in visual if len(re.findall(rf"{arg}\b", text)) > 1]


def test_nothing_of_an_image_is_computed_in_a_step(qwen):
    _, _, lm = qwen
    assert not visual_weights_read(lm.decode) and not visual_weights_read(lm.extend)
    assert len(visual_weights_read(lm.prefill)) > 20
    assert [kind for kind, _ in remarks(lm.decode)] == ["passed"] * 4


def test_equal_layers_are_traced_once(qwen):
    """Those that look at images, and those of the text, whose numbers are the same."""
    _, _, lm = qwen
    assert not [one.reason for one in lm.prefill.remarks if "equal layers" in one.reason]


def test_sizes_are_constants(qwen):
    """No loop over patches, no op that torch runs: grids and windows are known."""
    _, _, lm = qwen
    assert not [one for one in lm.prefill.remarks if one.pass_name == "fallback"]
    assert "image_grid_thw" not in str(lm.prefill.signature)


def test_a_saved_model_needs_no_torch(qwen, tmp_path):
    _, read, lm = qwen
    path = tmp_path / "lm.pipeline"
    lm.save(path)
    arrays = {name: tensor.numpy() for name, tensor in read.items()}
    np.savez(tmp_path / "read.npz", **arrays)
    code = f"""
import sys, numpy as np, pipeline
lm = pipeline.generation.load({str(path)!r})
read = dict(np.load({str(tmp_path / "read.npz")!r}))
print(lm.generate(**read, max_new_tokens=12).tolist())
print(lm.generate(read["input_ids"][:, :5], max_new_tokens=5).tolist())
try:
    lm.generate(**read | {{"image_grid_thw": read["image_grid_thw"][:, ::-1]}})
except pipeline.ArgumentError as error:
    print(str(error).split(":")[0])
assert "torch" not in sys.modules
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    text = lm.generate(read["input_ids"][:, :5], max_new_tokens=5)
    expected = [lm.generate(**read, max_new_tokens=12).tolist(), text.tolist(), "image_grid_thw"]
    assert found.splitlines() == [str(line) for line in expected]


def test_what_does_not_fit(llava, qwen):
    model, read, lm = llava
    one = rows(read, 1, 1)
    for wrong, said in (
        ({"input_ids": one["input_ids"].clamp(max=IMAGE - 1)}, f"expected 16 times token {IMAGE}, .* got \\[0\\]"),
        ({"pixel_values": read["pixel_values"]}, "pixel_values: expected 1 rows, as input_ids has, got 2"),
        ({"pixel_values": torch.randn(5, 3, 32, 32)}, "pixel_values: expected 1 for each of 4 rows at most, got 5"),
        ({"pixel_values": torch.randn(1, 3, 24, 32)}, "pixel_values.*expected float32\\[4, 3, 32, 32\\]"),
        ({"pixel_values": [1.0]}, "pixel_values: expected a tensor for all rows, got list"),
        ({"pixel_values": one["pixel_values"].double()}, "pixel_values.*float64"),
    ):
        with pytest.raises(ArgumentError, match=said):
            lm.generate(**one | wrong, max_new_tokens=2)
    for name, value in (("reuse_cache", True), ("prompt_lookup_num_tokens", 3), ("prefill_chunk_size", 8)):
        with pytest.raises(OptionError, match=f"{name}: is not there beside pixel_values"):
            lm.generate(**one, max_new_tokens=2, **{name: value})
    with pytest.raises(OptionError, match="rows: is not there for models that read pixel_values"):
        lm.rows()
    assert torch.equal(lm.generate(**one, max_new_tokens=4), model.generate(**one, max_new_tokens=4))
    _, read, lm = qwen
    grid = torch.tensor([[1, 2, 8], [1, 2, 4]])
    with pytest.raises(ArgumentError, match=r"image_grid_thw: the model was compiled for \[\[1, 4, 4\], \[1, 2, 4\]\]"):
        lm.generate(**rows(read, 1, 1) | {"image_grid_thw": grid})
    for sizes in ([[1, 4, 4], [1, 2]], None):
        with pytest.raises(ArgumentError, match="image_grid_thw: expected a tensor for all rows"):
            lm.generate(**rows(read, 1, 1) | {"image_grid_thw": sizes})
    with pytest.raises(ArgumentError, match="mm_token_type_ids: expected a tensor for all rows, got list"):
        lm.generate(prompt(1, 4), mm_token_type_ids=[[0] * 4], max_new_tokens=2)
    without = {name: tensor for name, tensor in rows(read, 1, 1).items() if name != "mm_token_type_ids"}
    with pytest.raises(ArgumentError, match="mm_token_type_ids: expected a tensor for all rows, got NoneType"):
        lm.generate(**without)


def test_examples_that_are_none(llava, qwen):
    model, read, _ = qwen
    without = {name: tensor for name, tensor in rows(read, 1, 1).items() if name != "mm_token_type_ids"}
    with pytest.raises(CaptureError, match="Qwen3VL.*: makes something else .*mm_token_type_ids"):
        pipeline.generation.compile(model, 96, inputs=without)
    model, read, _ = llava
    pixels = rows(read, 1, 1)["pixel_values"]
    for inputs, said in (
        ([pixels], "inputs: expected tensors by name, .* got list"),
        ({}, "inputs: expected tensors by name"),
        (rows(read, 1, 1) | {"pixel_values": pixels[:0]}, "tensors by name, none of them empty"),
        ({"pixel_values": pixels}, "inputs: expected the input_ids of a prompt"),
        ({"input_ids": read["input_ids"][1:]}, "and what the model reads besides"),
        (read, r"inputs: expected a prompt of one row without padding, got \[2, 56\]"),
        (rows(read, 0, 1), "without padding"),
    ):
        with pytest.raises(OptionError, match=said):
            pipeline.generation.compile(model, 96, inputs=inputs)
    with pytest.raises(CaptureError, match="LlamaForCausalLM: .*pixel_values"):
        pipeline.generation.compile(small_model("llama"), 96, inputs=rows(read, 1, 1))


def test_a_model_that_makes_something_else_of_images_is_refused():
    """GIT puts images in front of the text, where the cache has no slots for them."""
    vision = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 4}
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 4}
    config = tf.GitConfig(vision_config=vision | {"image_size": 32, "patch_size": 8}, vocab_size=90, **sizes)
    read = {"input_ids": prompt(1, 9) % 90, "pixel_values": torch.randn(1, 3, 32, 32)}
    with pytest.raises(CaptureError, match="GitForCausalLM: .*compile it with pipeline.compile"):
        pipeline.generation.compile(tf.GitForCausalLM(config).eval(), 64, inputs=read)
