"""Diagnostics against `expected-...` comments; lit_tests/tools/verify-diagnostics.mlir shows the common ones."""

from __future__ import annotations

import pytest

from pipeline.diagnostics import Diagnostic
from pipeline.tools.expected import check
from pipeline.tools.source import NamedText


def at(line, message="bad x", severity="error", notes=()):
    return Diagnostic(severity, message, "f.mlir" if line else "", line, 1 if line else 0, tuple(notes))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("op // expected-error {{bad}}", [at(1)]),
        ("// expected-error@+1 {{bad x}}\nop", [at(2)]),
        ("\nop\n\n// expected-error @-2 {{bad x}}", [at(2)]),
        (
            "// expected-error @below {{bad x}}\n// expected-warning @below {{ugly}}\nop",
            [at(3), at(3, "ugly", "warning")],
        ),
        ("op\n// expected-error @above {{bad x}}\n// expected-remark @above {{so}}", [at(1), at(1, "so", "remark")]),
        ("// expected-error @unknown {{bad x}}", [at(0)]),
        ("op // expected-error-re {{b{{a+}}d {{[xy]}}}}", [at(1, "baaad y")]),
        ("op // expected-error {{a.c}}", [at(1, "a.c")]),
        ("op // expected-note {{see}}", [at(1, "see", "note")]),
        ("op // expected-error {{bad x}}\nop", [at(1, notes=[at(2, "nobody expects notes", "note")])]),
        ("// expected-error @below {{bad}}\n// expected-error @below {{bad}}\nop", [at(3), at(3)]),
    ],
)
def test_met(text, found):
    assert check(NamedText("f.mlir", text), found) == []


@pytest.mark.parametrize(
    ("text", "found", "problems"),
    [
        ("op", [at(1)], ["f.mlir:1:1: unexpected error: bad x"]),
        ("op", [at(0)], ["f.mlir: unexpected error: bad x"]),
        ("op // expected-error {{bad}}", [], ['f.mlir:1: expected error "bad" was not produced']),
        ("op // expected-error {{bad}}", [at(1), at(1)], ["f.mlir:1:1: unexpected error: bad x"]),
        (
            "op // expected-warning {{bad}}",
            [at(1)],
            ["f.mlir:1:1: unexpected error: bad x", 'f.mlir:1: expected warning "bad" was not produced'],
        ),
        (
            "op\n// expected-error {{bad}}",
            [at(1)],
            ["f.mlir:1:1: unexpected error: bad x", 'f.mlir:2: expected error "bad" was not produced'],
        ),
        (
            "op // expected-error {{a.c}}",
            [at(1, "abc")],
            ["f.mlir:1:1: unexpected error: abc", 'f.mlir:1: expected error "a.c" was not produced'],
        ),
    ],
)
def test_not_met(text, found, problems):
    assert check(NamedText("f.mlir", text), found) == problems
