"""The words for what ops compute: `add`, `relu`, `conv2d`; those that `analysis.naming` gives, and their classes.

Nothing here needs MLIR, so that tables of fusion rules can be checked where it is not loaded.
"""

from __future__ import annotations

import functools

#: What entries of a table of fusion rules may be besides words.
CLASSES = ("elementwise", "reduction", "contraction", "cast", "broadcast")


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_CONTRACTIONS = _words("""
    matmul conv1d conv2d conv3d depthwise_conv1d depthwise_conv2d depthwise_conv3d attention
""")

_REDUCTIONS = _words("""
    pool softmax log_softmax layer_norm rms_norm group_norm argmax argmin mean var cross_entropy reduce
""")

_OTHERS = ("scan", "scatter", "sort", "topk")

#: What gives elements another place: joined with an op that computes, it goes by that op's words alone.
MOVES = _words("broadcast copy transpose fill gather pad concat slice reshape")

_ARITH = _words("""
    add sub mul div rem divs divu rems remu neg negf abs max min compare select relu andi ori xori shli shrsi shrui
    maximum minimum maxsi maxui minsi minui ceildivsi ceildivui floordivsi addui_extended subui_extended mulsi_extended
    mului_extended convertf scaling_extf scaling_truncf flush_denormals index_castui apply
""")

_MATH = _words("""
    acos acosh asin asinh atan atan2 atanh cbrt ceil clampf copysign cos cosh ctlz ctpop cttz erf erfc exp exp2 expm1
    floor fma fpowi ipowi isfinite isinf isnan isnormal log log10 log1p log2 powf round roundeven rsqrt sin sincos sinh
    sqrt tan tanh trunc
""")

#: What several ops of one body may be called together, and linalg's own named ops.
_COMPOSITES = _words("""
    gelu silu sigmoid hardtanh hardswish elu leaky_relu softplus square reciprocal map elementwise div_unsigned contract
    pack unpack mmt4d
""")


@functools.cache
def known_words() -> tuple[str, ...]:
    """All words that a table may name."""
    elementwise = ["cast", *_ARITH, *_MATH, *_COMPOSITES, *MOVES]
    reduced = [f"reduce_{word}" for word in elementwise]
    return tuple(dict.fromkeys([*elementwise, *_CONTRACTIONS, *_REDUCTIONS, *_OTHERS, *reduced]))


def class_of(word: str) -> str:
    """The class of a word; a word of none, such as `sort`, is its own."""
    if word in _CONTRACTIONS:
        return "contraction"
    if word in _REDUCTIONS or word.startswith("reduce"):
        return "reduction"
    if word in _OTHERS:
        return word
    return word if word in ("cast", "broadcast") else "elementwise"
