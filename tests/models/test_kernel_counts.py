"""The table of kernel counts in docs/fusion.md is true, and no model has more kernels than Inductor."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from zoo import ZOO

import pipeline

PAGE = (Path(__file__).parents[2] / "docs" / "fusion.md").read_text()
#: (model, kernels here, different ones, kernels of Inductor) as benchmarks/kernel_counts.py has written them.
ROWS = re.findall(r"^\| (\w+) \| (\d+) \| (\d+) \| (\d+) \|", PAGE, re.MULTILINE)


def test_the_table_has_the_models():
    assert [name for name, *_ in ROWS] == ["bert", "gpt2", "llama", "vit", "resnet18"]


@pytest.mark.parametrize(("name", "ours", "different", "inductor"), ROWS)
def test_the_table_is_true(name, ours, different, inductor):
    model, args, kwargs = ZOO[name].create()
    text = pipeline.compile(model, args, kwargs).ir("kernels")
    main = text[text.index("func.func @main") :]
    called = re.findall(r"call @([\w$.-]+)\(", main[: main.find("func.func", 1)])
    assert (len(called), len(set(called))) == (int(ours), int(different))
    assert len(called) <= int(inductor)
