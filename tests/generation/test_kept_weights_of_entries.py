"""`keep=`: patterns are of the names that the model itself has for its weights."""

from __future__ import annotations

import pytest
from small_models import small_model

import pipeline.generation
from pipeline.errors import OptionError


def test_patterns_are_of_the_models_names() -> None:
    model = small_model("llama")
    lm = pipeline.generation.compile(model, 32, weights="int8", keep=["lm_head", "model.layers.*.mlp"])
    said = [remark for remark in lm.decode.remarks if remark.pass_name == "quantize-weights"]
    kept = {remark.module for remark in said if "is to be kept" in remark.reason}
    assert kept and all("mlp" in str(module) or str(module).endswith("lm_head") for module in kept)
    with pytest.raises(OptionError, match="no weight is called 'head'; there are lm_head"):
        pipeline.generation.compile(model, 32, weights="int8", keep=["head"])
