"""`keep=`: which weights are left as they are, and what is said of names that there are not."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import nn

import pipeline
from pipeline.errors import OptionError


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(128, 128) for _ in range(3))
        self.lm_head = nn.Linear(128, 192)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x).relu()
        return self.lm_head(x)


def rounded(model: nn.Module, x: torch.Tensor, **options: Any) -> list[str]:
    """The modules whose products are rounded; the others say that they are to be kept."""
    executable = pipeline.compile(model, (x,), num_threads=1, **options)
    said = [remark for remark in executable.remarks if remark.pass_name == "quantize-weights"]
    kept = {remark.module for remark in said if "is to be kept" in remark.reason}
    found = {remark.module for remark in said if remark.kind == "passed"}
    assert not kept & found and len(kept | found) == 4
    with torch.no_grad():
        assert (executable(x) - model(x)).abs().max() < 0.05
    return sorted(str(module) for module in found)


@pytest.mark.parametrize(
    "options", [{"weights": "int8"}, {"weights": "int8", "activations": "int8"}, {"weights": "int4", "group": 32}]
)
@pytest.mark.parametrize(
    ("keep", "left"),
    [
        (["lm_head"], ["layers.0", "layers.1", "layers.2"]),
        (["layers.*"], ["lm_head"]),
        (["layers.1.weight", "lm_head.*"], ["layers.0", "layers.2"]),
        (["layers.?", "lm_head"], []),
    ],
)
def test_weights_that_match_stay(options: dict[str, Any], keep: list[str], left: list[str]) -> None:
    torch.manual_seed(0)
    assert rounded(Layers().eval(), torch.randn(2, 128), keep=keep, **options) == left


def test_kept_weights_are_not_rounded() -> None:
    model, x = Layers().eval(), torch.randn(2, 128)
    with torch.no_grad():
        for options in ({"weights": "int8"}, {"precision": "bf16"}):
            executable = pipeline.compile(model, (x,), keep=("layers", "lm_head"), **options)
            torch.testing.assert_close(executable(x), model(x))


def test_tied_weights_are_kept_by_any_of_their_names() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.inner, self.head = nn.Embedding(160, 128), nn.Linear(128, 128), nn.Linear(128, 160)
            self.head.weight = self.embedding.weight

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.head(self.inner(self.embedding(ids)))

    model, ids = Tied().eval(), torch.arange(5)
    for name in ("head", "embedding.weight"):
        executable = pipeline.compile(model, (ids,), weights="int8", keep=[name])
        said = [remark for remark in executable.remarks if remark.pass_name == "quantize-weights"]
        assert {(remark.module, remark.kind) for remark in said} == {("inner", "passed"), ("head", "missed")}


def test_torch_compile_and_graphs_without_such_a_weight() -> None:
    """A model may be several graphs, not all of which have the weight."""

    class Broken(Layers):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.layers[0](x)
            torch._dynamo.graph_break()
            return self.lm_head(x)

    model, x = Broken().eval(), torch.randn(2, 128)
    compiled = torch.compile(model, backend="pipeline", options={"weights": "int8", "keep": ["lm_head", "layers.0"]})
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), model(x))


@pytest.mark.parametrize(
    ("keep", "options", "message"),
    [
        (["lm_haed"], {"weights": "int8"}, "keep: no weight is called 'lm_haed'; there are lm_head"),
        (["layers.3"], {"precision": "bf16"}, "keep: no weight is called 'layers.3'; there are layers."),
        ("lm_head", {"weights": "int8"}, "keep: expected a list of names of weights or modules, with * and ?"),
        (["a b"], {"weights": "int8"}, "keep: expected a list of names of weights or modules, with * and ?"),
        (["lm_head"], {}, "keep: nothing is rounded"),
        (["lm_head"], {"weights": "int8", "target": "vulkan"}, "for the target cpu only, not for vulkan"),
    ],
)
def test_wrong_patterns(keep: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=re.escape(message)):
        pipeline.compile(Layers(), (torch.zeros(1, 128),), keep=keep, **options)
    with pytest.raises(OptionError, match=re.escape(message)):
        pipeline.capture(Layers(), (torch.zeros(1, 128),)).compile(keep=keep, **options)
