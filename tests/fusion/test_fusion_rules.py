"""Tables of fusion rules: printed, read back, changed; every mistake in one is an error with its line."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pipeline
from pipeline import FusionRules, OptionError, load_rules
from pipeline.analysis.op_naming import _ARITH, _BODY, _SILENT
from pipeline.fusion_rules.op_words import known_words
from pipeline.fusion_rules.rules import KINDS, FusionLimits, KindRules, dump, lend, tables
from pipeline.fusion_rules.yaml_format import parse
from pipeline.mlir import arith, math
from pipeline.tools import opt

ACCELERATOR = """
target: npu
kinds:
  matmul:
    epilogue: [add, relu]
    dtypes: [f32]
"""


def test_every_target_has_a_table_of_all_kinds_that_is_read_back():
    assert "cpu" in tables()
    for target in tables():
        rules = load_rules(target)
        assert rules.target == target
        assert tuple(rules.kinds) == KINDS
        assert parse(dump(rules), "printed") == rules


def test_the_printed_table_given_back_is_the_table(tmp_path, capsys):
    assert opt.main(["--print-fusion-rules=cpu"]) == 0
    path = tmp_path / "table.yaml"
    path.write_text(capsys.readouterr().out)
    assert load_rules(path) == load_rules(str(path)) == load_rules("cpu")
    model, x = nn.Sequential(nn.Linear(4, 5), nn.GELU(), nn.Softmax(-1)).requires_grad_(False), torch.randn(3, 4)
    own, printed = pipeline.compile(model, (x,)), pipeline.compile(model, (x,), fusion_rules=path)
    assert own.ir("fused") == printed.ir("fused")


def test_a_table_with_all_its_parts():
    rules = parse(ACCELERATOR + "limits:\n  ops: 3\nops:\n  exp: []\n  tanh: [prologue]\n", "f.yaml")
    expected = FusionRules(
        "npu",
        {"matmul": KindRules((), ("add", "relu"), ("f32",))},
        FusionLimits(ops=3),
        {"exp": (), "tanh": ("prologue",)},
    )
    assert rules == expected
    assert parse(dump(rules), "printed") == rules


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f.yaml:1: empty; expected the keys target and kinds"),
        ("target: [x\nkinds: {}", "f.yaml:2: not YAML"),
        ("target: x", "f.yaml:1: the key 'kinds' is missing"),
        ("- 3", "f.yaml:1: expected keys with values"),
        ("target: [x]\nkinds: {}", "f.yaml:1: expected a word"),
        ("target: x\nkind: {}", "f.yaml:2: no key 'kind'; did you mean 'kinds'?"),
        ("target: x\nkinds: {}\nkinds: {}", "f.yaml:3: the key 'kinds' is there twice"),
        ("target: x\nkinds:\n  matmull: {}", "f.yaml:3: no kind 'matmull'; did you mean 'matmul'?"),
        ("target: x\nkinds:\n  conv:\n    epilog: []", "f.yaml:4: no key 'epilog'; did you mean 'epilogue'?"),
        ("target: x\nkinds:\n  conv:\n    epilogue: add", "f.yaml:4: expected a list in [ ]"),
        (
            "target: x\nkinds:\n  conv:\n    epilogue: [add,\n      rellu]",
            "f.yaml:5: no op 'rellu'; did you mean 'relu'?",
        ),
        ("target: x\nkinds:\n  conv:\n    dtypes: [f31]", "f.yaml:4: no dtype 'f31'; did you mean 'f32'?"),
        ("target: x\nkinds: {}\nlimits:\n  ops: many", "f.yaml:4: ops: expected a number, got 'many'"),
        ("target: x\nkinds: {}\nlimits:\n  opps: 1", "f.yaml:4: no limit 'opps'; did you mean 'ops'?"),
        ("target: x\nkinds: {}\nops:\n  relu: [prolog]", "f.yaml:4: no role 'prolog'; did you mean 'prologue'?"),
        ("target: x\nkinds: {}\nops:\n  reluu: []", "f.yaml:4: no op 'reluu'; did you mean 'relu'?"),
    ],
)
def test_a_mistake_is_an_error_with_its_line(text, message, tmp_path):
    with pytest.raises(OptionError) as caught:
        parse(text, "f.yaml")
    assert message in str(caught.value)
    path = tmp_path / "f.yaml"
    path.write_text(text)
    with pytest.raises(OptionError, match="f.yaml"):
        load_rules(path)


def test_no_such_table():
    with pytest.raises(OptionError, match="fusion rules 'gpuu': no file, and no target; there are cpu"):
        load_rules("gpuu")

    class Explodes(nn.Module):
        def forward(self, x):
            raise AssertionError("captured")

    with pytest.raises(OptionError, match="no file, and no target"):
        pipeline.compile(Explodes(), (torch.ones(1),), fusion_rules="nowhere.yaml")
    with pytest.raises(OptionError, match="expected the name of a target, a path or FusionRules, got int"):
        pipeline.compile(Explodes(), (torch.ones(1),), fusion_rules=3)


def test_what_a_table_says():
    rules = parse(ACCELERATOR, "f.yaml")
    assert rules.why_not("matmul", "anchor", ["matmul"], "f32") is None
    assert rules.why_not("matmul", "anchor", ["matmul"], "f16") == "table npu takes matmul of f32, not of f16"
    assert rules.why_not("matmul", "epilogue", ["add", "relu"], "f32") is None
    assert rules.why_not("matmul", "epilogue", ["add", "exp"], "f32") == (
        "table npu takes add, relu as epilogue of matmul, not exp"
    )
    assert rules.why_not("matmul", "prologue", ["add"], "f32") == (
        "table npu takes nothing as prologue of matmul, not add"
    )
    assert rules.why_not("conv", "anchor", ["conv2d"], "f32") == "table npu has no kind conv"


def test_classes_cover_their_words():
    cpu = load_rules("cpu")
    for word in ("add", "cast", "broadcast", "gelu", "transpose"):
        assert cpu.why_not("matmul", "epilogue", [word], "f32") is None
    for word in ("reduce_add", "softmax", "matmul", "sort"):
        assert cpu.why_not("matmul", "epilogue", [word], "f32") is not None
    assert cpu.why_not("reduction", "epilogue", ["exp", "reduce_add"], "f32") is None
    casts = cpu.with_(kinds={"matmul": {"epilogue": ["cast"]}})
    assert casts.why_not("matmul", "epilogue", ["cast"], "f32") is None
    assert casts.why_not("matmul", "epilogue", ["add"], "f32") is not None


def test_changes_by_op_name_kind_and_limit():
    cpu = load_rules("cpu")
    changed = cpu.with_(target="mine", kinds={"conv": None}, limits={"ops": 4}, ops={"exp": ["prologue"]})
    assert changed.limits == FusionLimits(4, cpu.limits.results, cpu.limits.operands, cpu.limits.scratch_bytes)
    assert "conv" not in changed.kinds and "conv" in cpu.kinds
    assert changed.why_not("matmul", "epilogue", ["exp"], "f32") == "table mine does not take exp as epilogue"
    assert changed.why_not("reduction", "prologue", ["exp"], "f32") is None
    allowed = cpu.with_(ops={"reduce_add": ["epilogue"]})
    assert allowed.why_not("matmul", "epilogue", ["reduce_add"], "f32") is None
    for wrong in ({"kinds": {"convv": {}}}, {"kinds": {"conv": {"epilogue": ["rellu"]}}}, {"limits": {"opps": 1}}):
        with pytest.raises(OptionError, match="did you mean"):
            cpu.with_(**wrong)


def test_lent_tables_go_when_their_block_ends():
    rules = parse(ACCELERATOR, "f.yaml")
    with lend(rules) as name:
        assert load_rules(name) is rules
    with pytest.raises(OptionError):
        load_rules(name)


def test_every_op_of_a_body_has_a_known_word():
    names = {getattr(one, "OPERATION_NAME", "") for module in (arith, math) for one in vars(module).values()}
    shorts = {name.partition(".")[2] for name in names if name.startswith(("arith.", "math."))} - _SILENT
    words = {_BODY.get(short, short.rstrip("if") if short[:-1] in _ARITH else short) for short in shorts}
    assert words <= set(known_words())
