"""What a language model is told by in the disk cache, so that it need not be exported again."""

from __future__ import annotations

import functools
import sys

import pytest
import torch
from generation.small_models import eager, prompt, small_model

import pipeline
from pipeline.frontend.generation import entry_source
from pipeline.frontend.generation.cached_attention import CacheBuffers, LayerShape
from pipeline.frontend.generation.entries import PromptEntry
from pipeline.frontend.generation.entry_source import EntrySource
from pipeline.options import Options


def test_an_equal_model_is_not_exported_again(tmp_path, monkeypatch):
    monkeypatch.setenv("PIPELINE_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PIPELINE_CACHE_SIZE", "1G")
    pipeline.generation.compile(small_model("llama"), max_length=48)

    def refused(*args):
        raise AssertionError("exported")

    monkeypatch.setattr(entry_source, "exported_source", refused)
    model = small_model("llama")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.01 * torch.randn_like(parameter))
    lm = pipeline.generation.compile(model, max_length=48)  # of other weights
    ids = prompt(1, 9)
    assert torch.equal(lm.generate(ids, max_new_tokens=20), eager(model, ids, max_new_tokens=20))
    with torch.no_grad():
        model.model.layers[0].mlp.up_proj.weight.neg_()
    assert torch.equal(lm.generate(ids, max_new_tokens=20), eager(model, ids, max_new_tokens=20))
    with pytest.raises(AssertionError, match="exported"):
        pipeline.generation.compile(model, max_length=64)


def fingerprint(change=lambda model: None, rows=1, quantized=False):
    model = small_model("gpt2")
    change(model)
    entry = PromptEntry(model, CacheBuffers([LayerShape(4, 8, 8, torch.float32)], rows, 16, quantized))
    ids, padding = torch.ones(rows, 5, dtype=torch.int64), torch.zeros(rows, dtype=torch.int64)
    return EntrySource(entry, (ids, padding), None, Options()).fingerprint()


class OtherNorm(torch.nn.LayerNorm):
    def forward(self, x):
        return x


def replace_norm(model):
    model.transformer.ln_f = OtherNorm(32)


def tie(model):
    model.lm_head.weight = model.transformer.wte.weight


def keep(model, kept):
    model.transformer.h[0].mlp.kept = kept


def test_what_a_fingerprint_tells_apart():
    plain, gelu = fingerprint(), torch.nn.functional.gelu
    assert plain is not None and plain == fingerprint()

    def another_activation(model):
        model.transformer.h[0].mlp.act = torch.nn.ReLU()

    changes = [
        replace_norm,
        tie,
        another_activation,
        lambda model: setattr(model.transformer.h[0].attn, "scaling", 0.5),
        lambda model: setattr(model.config, "layer_norm_epsilon", 1e-3),
        lambda model: model.train(),
        lambda model: setattr(model.transformer, "kept", torch.float16),
        lambda model: setattr(model.transformer, "kept", torch.float32),
        lambda model: model.transformer.wte.to(torch.bfloat16),
        *(functools.partial(keep, kept=functools.partial(gelu, approximate=kind)) for kind in ("tanh", "none")),
        functools.partial(keep, kept=functools.partial(torch.nn.functional.relu, inplace=True)),
        functools.partial(keep, kept=gelu),
        functools.partial(keep, kept=torch._C._nn.silu),
    ]
    found = [plain, fingerprint(rows=2), fingerprint(quantized=True), *map(fingerprint, changes)]
    assert None not in found and len(set(found)) == len(found)


def test_functions_in_the_places_of_others_are_told(monkeypatch):
    """As libraries of kernels put them there: in a class, and in the module beside it."""
    attention = type(small_model("gpt2").transformer.h[0].attn)
    found = [fingerprint(), fingerprint()]
    for owner, name in ((attention, "forward"), (sys.modules[attention.__module__], "eager_attention_forward")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, lambda *args, **kwargs: args[1])
            found.append(fingerprint())
    assert found[0] == found[1] and None not in found and len(set(found)) == 3


def test_what_has_no_fingerprint():
    scale = functools.partial(torch.mul, other=torch.ones(2))
    assert fingerprint(lambda model: setattr(model.transformer.h[0].mlp, "kept", scale)) is None
    assert fingerprint(lambda model: setattr(model.transformer.h[0].mlp, "kept", model.lm_head.forward)) is None
    factor = 2.0
    assert fingerprint(lambda model: setattr(model.transformer.h[0].mlp, "kept", lambda x: x * factor)) is None
    assert fingerprint(lambda model: model.lm_head.register_forward_hook(lambda *args: None)) is None
    assert fingerprint(lambda model: setattr(model.lm_head, "forward", lambda x: x)) is None
    assert fingerprint(lambda model: setattr(model.lm_head, "apart", torch.ones(2))) is None
