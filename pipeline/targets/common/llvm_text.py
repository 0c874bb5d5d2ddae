"""LLVM IR text as MLIR prints it → as llvmlite's older LLVM reads it.

MLIR in the torch-mlir wheel is of LLVM 24, which prints floating-point literals in forms (`+inf`, `nan(0x1)`, decimals
rounded to the type, `f0x…`) that LLVM 22 in llvmlite does not read. Nothing else differs in what we use. Remove this
file when llvmlite's LLVM is 24.

A bfloat becomes an i16 of the same bits, which is all that is done with it by then: LLVM 22 asserts on vectors of it
("Unexpected illegal type!"), and to select one calls `__truncsfbf2`, which not every system has. The vectors that are
there on CPUs are operands of dot products, where those are legal; they stay. On GPUs none does: fragments of matrices
are made of single elements.
"""

from __future__ import annotations

import re
import struct
from fractions import Fraction

#: Exponent and mantissa bits.
_FORMATS = {"half": (5, 10), "bfloat": (8, 7), "float": (8, 23), "double": (11, 52)}

_NUMBER = r"[+-]?\d+\.\d*(?:e[+-]?\d+)?"
_SPECIAL = r"[+-]?(?:inf|qnan|snan|nan)\b(?:\(0x[0-9A-Fa-f]+\))?"
_TOKEN = re.compile(
    r'(?P<skip>"(?:[^"\\]|\\.)*"|[%@!$#][\w.$-]+|;.*$)'
    r"|\b(?P<type>half|bfloat|float|double)\b"
    rf"|(?P<literal>f0x[0-9A-Fa-f]+|{_SPECIAL}|{_NUMBER})"
    r"|[A-Za-z_][\w.]*"
)

#: What a literal stands behind, and what it begins with.
_TYPE = re.compile(r"\b(?:half|float|double)\b")
_LOOKS_LITERAL = re.compile(r"\bf0x|\d\.|inf|nan")

_IN_VECTOR = re.compile(r"<\d+ x $")


def to_llvm22(text: str, keep_vectors: bool = False) -> str:
    """Rewrites the floating-point literals of LLVM 24 textual IR; a literal's type is the last one to its left.

    With `keep_vectors`, vectors of bfloat stay what they are.
    """
    lines = text.split("\n")
    return "\n".join(_rewrite_line(line, keep_vectors) if _is_worth_a_look(line) else line for line in lines)


def _is_worth_a_look(line: str) -> bool:
    """Whether a line may need rewriting: most name types, a struct hundreds, and have no literal behind the first."""
    if "bfloat" in line:
        return True
    first = _TYPE.search(line)
    return first is not None and _LOOKS_LITERAL.search(line, first.end()) is not None


def _rewrite_line(line: str, keep_vectors: bool) -> str:
    kind = None
    pieces, position = [], 0
    for match in _TOKEN.finditer(line):
        if match["type"]:
            kind = match["type"]
            stays = keep_vectors and _IN_VECTOR.search(line, 0, match.start()) is not None
            if kind == "bfloat" and not stays:
                pieces += [line[position : match.start()], "i16"]
                position = match.end()
        elif match["literal"] and kind is not None:
            pieces += [line[position : match.start()], _spell(_bits(match["literal"], kind), kind)]
            position = match.end()
    return "".join(pieces) + line[position:]


def _bits(literal: str, kind: str) -> int:
    """The bit pattern of a literal of type `kind`."""
    exponent_bits, mantissa_bits = _FORMATS[kind]
    if literal.startswith("f0x"):
        return int(literal[3:], 16)
    sign = int(literal[0] == "-") << (exponent_bits + mantissa_bits)
    infinity = ((1 << exponent_bits) - 1) << mantissa_bits
    name, _, payload = literal.lstrip("+-").partition("(")
    if name == "inf":
        return sign | infinity
    if name == "qnan":
        return sign | infinity | 1 << (mantissa_bits - 1)
    if name in ("nan", "snan"):
        quiet = 1 << (mantissa_bits - 1) if name == "nan" else 0
        return sign | infinity | quiet | int(payload.rstrip(")") or "0", 16)
    return sign | _round(abs(Fraction(literal)), exponent_bits, mantissa_bits)


def _round(value: Fraction, exponent_bits: int, mantissa_bits: int) -> int:
    """The nearest number of the format to a non-negative fraction, ties to even, as bits."""
    if value == 0:
        return 0
    bias = (1 << (exponent_bits - 1)) - 1
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    if Fraction(2) ** exponent > value:
        exponent -= 1
    exponent = max(exponent, 1 - bias)
    mantissa = round(value / Fraction(2) ** (exponent - mantissa_bits))  # Python rounds ties to even
    if mantissa >> (mantissa_bits + 1):
        mantissa >>= 1
        exponent += 1
    biased = exponent + bias if mantissa >> mantissa_bits else 0
    return biased << mantissa_bits | (mantissa & ((1 << mantissa_bits) - 1))


def _spell(bits: int, kind: str) -> str:
    """The bits as LLVM 22 reads them; a float is spelled as the bits of the equal double."""
    if kind == "half":
        return f"0xH{bits:04X}"
    if kind == "bfloat":
        return str(bits)
    if kind == "double":
        return f"0x{bits:016X}"
    sign, exponent, mantissa = bits >> 31, bits >> 23 & 0xFF, bits & 0x7FFFFF
    if exponent == 0xFF:
        return f"0x{sign << 63 | 0x7FF << 52 | mantissa << 29:016X}"
    value = struct.unpack("<f", struct.pack("<I", bits))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
