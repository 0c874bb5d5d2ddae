"""Functions of JAX, exported with `jax.export`, compiled by pipeline and compared with JAX; prints what agrees.

    python scripts/jax_programs.py        # all of them
    python scripts/jax_programs.py conv   # those whose name has `conv`

Needs the package jax, which no other part of the project does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "add": (lambda x, y: x + y * 2, ((3, 5), (3, 5))),
    "broadcast": (lambda x, y: x - y, ((3, 1), (1, 5))),
    "matmul": (lambda x, y: x @ y, ((7, 9), (9, 4))),
    "batch_matmul": (lambda x, y: jnp.einsum("bij,bjk->bik", x, y), ((2, 3, 4), (2, 4, 5))),
    "mlp": (lambda x, w, b, v: jnp.tanh(x @ w + b) @ v, ((4, 8), (8, 16), (16,), (16, 3))),
    "gelu": (jax.nn.gelu, ((4, 9),)),
    "exact_gelu": (lambda x: jax.nn.gelu(x, approximate=False), ((4, 9),)),
    "softmax": (jax.nn.softmax, ((4, 9),)),
    "log_softmax": (jax.nn.log_softmax, ((4, 9),)),
    "layer_norm": (lambda x: (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5), ((4, 9),)),
    "reductions": (lambda x: (x.sum(0), x.max(1), x.min(), x.prod(1), jnp.any(x > 0, 0)), ((4, 5),)),
    "argmax": (lambda x: (x.argmax(1), x.argmin(0)), ((4, 5),)),
    "transpose": (lambda x: x.transpose(2, 0, 1).reshape(5, 12), ((3, 4, 5),)),
    "slices": (lambda x: (x[1:, ::2], x[:, ::-1], x[-1]), ((5, 6),)),
    "pad": (lambda x: jnp.pad(x, ((1, 2), (0, 3)), constant_values=7.0), ((3, 4),)),
    "concat": (lambda x, y: jnp.concatenate([x, y, x], 1), ((3, 2), (3, 5))),
    "where": (lambda x: jnp.where(x > 0, jnp.sqrt(jnp.abs(x)), jnp.exp(x)), ((4, 5),)),
    "gather": (lambda x: x[jnp.array([2, 0, 1])], ((4, 5),)),
    "embedding": (lambda x, i: x[(jnp.abs(i) * 3).astype(jnp.int32) % 6], ((6, 5), (7,))),
    "dynamic_slice": (lambda x: lax.dynamic_slice(x, ((x[0, 0] > 0).astype(jnp.int32), 1), (2, 3)), ((4, 5),)),
    "dynamic_update": (lambda x, y: lax.dynamic_update_slice(x, y, (1, 2)), ((4, 5), (2, 2))),
    "iota": (lambda x: x + jnp.arange(5, dtype=jnp.float32), ((4, 5),)),
    "conv": (
        lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
        ((1, 8, 8, 3), (3, 3, 3, 4)),
    ),
    "conv_nchw": (lambda x, w: lax.conv(x, w, (2, 2), "VALID"), ((2, 3, 9, 9), (4, 3, 3, 3))),
    "max_pool": (
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
        ((1, 8, 8, 3),),
    ),
    "cumsum": (lambda x: jnp.cumsum(x, 1), ((3, 6),)),
    "fori_loop": (lambda x: lax.fori_loop(0, 10, lambda i, c: c * 0.5 + i, x), ((5,),)),
    "while_loop": (lambda x: lax.while_loop(lambda c: jnp.sum(c) < 100, lambda c: c * 2 + 1, jnp.abs(x)), ((5,),)),
    "cond": (lambda x: lax.cond(x[0] > 0, lambda v: v + 1, lambda v: v * 2, x), ((5,),)),
    "switch": (
        lambda x: lax.switch((x[0] > 0).astype(jnp.int32) + 1, [jnp.sin, jnp.cos, jnp.tanh, jnp.exp], x),
        ((5,),),
    ),
    "scan": (lambda x: lax.scan(lambda c, row: (c + row, c * row), jnp.zeros(4), x), ((6, 4),)),
    "grad": (jax.grad(lambda w, x: jnp.sum(jnp.tanh(x @ w) ** 2)), ((5, 3), (4, 5))),
    "attention": (
        lambda q, k, v: jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / 2.0) @ v.transpose(0, 2, 1, 3),
        ((2, 5, 2, 4), (2, 6, 2, 4), (2, 6, 2, 4)),
    ),
    "vmap": (lambda x, w: jax.vmap(lambda row: jnp.dot(w, row))(x), ((4, 5), (3, 5))),
    "special": (lambda x: (jax.scipy.special.erf(x), jnp.log1p(jnp.abs(x)), jnp.arctan2(x, x + 1)), ((4, 5),)),
    "integers": (lambda x: ((x * 10).astype(jnp.int32) // 3, (x * 10).astype(jnp.int32) % 4), ((4, 5),)),
    "bytes": (lambda x: (jnp.abs(x) * 20).astype(jnp.uint8) >> 1, ((4, 5),)),
    "scatter": (lambda x, y: x.at[jnp.array([0, 2])].add(y), ((4, 5), (2, 5))),
    "sort": (lambda x: jnp.sort(x, 1), ((4, 5),)),
    "top_k": (lambda x: lax.top_k(x, 2), ((4, 5),)),
    "fft": (lambda x: jnp.abs(jnp.fft.rfft(x)), ((4, 8),)),
    "cholesky": (lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(4)), ((4, 4),)),
}


def disagreement(name: str) -> str | None:
    """What is wrong with a program; None where all results agree."""
    import pipeline

    function, shapes = PROGRAMS[name]
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
    jitted = jax.jit(function)
    expected = [np.asarray(leaf) for leaf in jax.tree.leaves(jitted(*arrays))]
    exported = jax.export.export(jitted)(*[jax.ShapeDtypeStruct(each.shape, each.dtype) for each in arrays])
    try:
        found = pipeline.compile(exported, fallback="error", cache=False)(*arrays)
        found = list(found) if isinstance(found, tuple) else [found]
        for want, got in zip(expected, found, strict=True):
            assert want.dtype == got.dtype, f"{got.dtype} instead of {want.dtype}"
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)
    except Exception as error:  # what is unforeseen is what is looked for
        return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return None


def main() -> None:
    """Runs the programs."""
    pattern = sys.argv[1] if len(sys.argv) > 1 else ""
    chosen = [name for name in PROGRAMS if pattern in name]
    wrong = {name: reason for name in chosen if (reason := disagreement(name)) is not None}
    sys.stdout.write(f"{len(chosen) - len(wrong)} of {len(chosen)} programs agree with JAX {jax.__version__}\n")
    sys.stdout.writelines(f"  {name}: {reason}\n" for name, reason in wrong.items())


if __name__ == "__main__":
    main()
