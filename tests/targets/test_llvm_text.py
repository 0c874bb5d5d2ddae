"""LLVM IR text as MLIR prints it, rewritten for the LLVM in llvmlite."""

from __future__ import annotations

import struct

import pytest
from llvmlite import binding

from pipeline.targets.common.llvm_text import to_llvm22

STRUCT = "{ " + ", ".join(["float"] * 200) + " }"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ret float 1.000000e+00", "ret float 0x3FF0000000000000"),
        ("ret float f0x3F800000", "ret float 0x3FF0000000000000"),
        ("ret float -inf", "ret float 0xFFF0000000000000"),
        ("ret double +inf", "ret double 0x7FF0000000000000"),
        ("ret double nan(0x1)", "ret double 0x7FF8000000000001"),
        ("ret half 6.103520e-05", "ret half 0xH0400"),
        ("ret half -1.000000e+00", "ret half 0xHBC00"),
        ("ret bfloat 1.000000e+00", "ret i16 16256"),
        ("ret bfloat %x", "ret i16 %x"),
        ("%y = bitcast <32 x bfloat> %x to <16 x i32>", "%y = bitcast <32 x i16> %x to <16 x i32>"),
        (f"insertvalue {STRUCT} %x, float 2.500000e-01, 7", f"insertvalue {STRUCT} %x, float 0x3FD0000000000000, 7"),
        ("<float 5.000000e-01, float qnan>", "<float 0x3FE0000000000000, float 0x7FF8000000000000>"),
    ],
)
def test_literals(line: str, expected: str) -> None:
    """A literal has the type that stands last in front of it."""
    assert to_llvm22(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        f"%y = extractvalue {STRUCT} %x, 3",
        "%float.1 = fadd float %inf, %nan",
        'call void @"float 1.0"(float %x)',
        "%z = call float @llvm.sqrt.f32(float %x) ; 1.5",
        "%k = add i32 %i, 10",
        "@table = constant [2 x i8] [i8 1, i8 2], align 1",
    ],
)
def test_what_has_no_literals_stays(line: str) -> None:
    assert to_llvm22(line) == line


def test_vectors_of_bfloat_are_kept_where_that_is_asked_for() -> None:
    line = "%y = call bfloat @f(<32 x bfloat> %x, bfloat 1.000000e+00)"
    assert to_llvm22(line, keep_vectors=True) == "%y = call i16 @f(<32 x bfloat> %x, i16 16256)"
    assert to_llvm22(line) == "%y = call i16 @f(<32 x i16> %x, i16 16256)"


@pytest.mark.parametrize("number", [0.1, -3.0e38, 1.0e-45, 1.17549435e-38, 16777217.0, 65504.0, 2.0**-133])
def test_llvm_reads_the_number_that_was_meant(number: float) -> None:
    """Decimals are rounded to the type, as LLVM 24 does."""
    module = binding.parse_assembly(to_llvm22(f"@x = constant float {number:e}\n@y = constant double {number:.17e}"))
    written = str(module)
    (as_float,) = struct.unpack("<f", struct.pack("<f", float(f"{number:e}")))
    assert _literal(written, "float") == as_float and _literal(written, "double") == number


def _literal(text: str, kind: str) -> float:
    literal = text.partition(f"constant {kind} ")[2].split()[0]
    if literal.startswith("0x"):
        (number,) = struct.unpack("<d", struct.pack("<Q", int(literal, 16)))
        return number
    return float(literal)
