"""How far the results of a model are off when one of its weights alone is rounded, and which to keep for a bound.

The model is compiled once, as it is: what products read is what rounding would leave of a weight, bound in its place.
That of a weight in 16 bits is rounded to 16 bits again, which makes errors of eight bits some percent larger.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.runtime.call.array_libraries import as_numpy
from pipeline.runtime.executable import Executable
from pipeline.runtime.interface.small_floats import as_doubles

#: What weights may be rounded to, as options of the compiler.
KINDS = {"int8": "--weights=int8", "int4": "--weights=int4", "bf16": "--precision=bf16"}

#: Smaller weights are left as they are, see quantize-weights.
_LEAST_BYTES = 1 << 14

#: A result of so many columns and more is taken for logits.
_CLASSES = 100

#: The results of a call by name.
Results = Mapping[str, Any]


@dataclass(frozen=True)
class Rounded:
    """What comes of rounding a weight.

    Attributes:
        name: that of the weight.
        error: how far the results are off, relative to their size (2-norms).
        divergence: that of the distributions which logits stand for (Kullback-Leibler, mean of rows); None without any.
    """

    name: str
    error: float
    divergence: float | None


def report(
    executable: Executable, call: Callable[[Executable], Results], group: int | None, bound: float | None
) -> Iterator[str]:
    """Lines of text: of each kind of rounding the errors of all weights, the worst first, and what holds a bound.

    Args:
        call: calls an executable with the arguments of the comparison.
        group: how many weights of a column share a scale; None for all.
        bound: the largest error that is wanted.
    """
    exact, weights = call(executable), executable.weights
    summed = _summed_dims(executable)
    if not summed:
        yield "there is no weight that a matrix product in f32 or 16 bits reads\n"
        return
    for kind, option in KINDS.items():
        lowered = {
            name: rounded
            for name, dims in summed.items()
            if (rounded := rounded_weight(as_numpy(weights[name]), dims, kind, group)) is not None
        }
        lines = f"{option}{f' --group={group}' if group and kind != 'bf16' else ''}"
        yield f"{lines}: error of the results when one weight alone is rounded, relative to their size\n"

        def off(names: Collection[str], lowered: Mapping[str, np.ndarray] = lowered) -> tuple[float, float | None]:
            changed = {name: lowered[name] for name in names}
            return _distance(exact, call(executable.with_weights({**weights, **changed})))

        found = sorted((Rounded(name, *off([name])) for name in lowered), key=lambda one: -one.error)
        yield from (_line(one) for one in found)
        stay = [name for name in summed if name not in lowered]
        if stay:
            yield f"  as they are: {', '.join(stay)}\n"
        if not lowered:
            continue
        everything = off(list(lowered))
        yield _line(Rounded(f"all {len(lowered)} of them", *everything))
        if bound is not None:
            names = [one.name for one in found]
            kept = _fewest_kept(names, bound, everything[0], lambda names: off(names)[0])
            error = off(names[kept:])[0] if kept else everything[0]
            options = "".join(f" --keep={name}" for name in names[:kept])
            yield f"  within {bound:g}: {lines}{options}, error {error:.3g}\n"


def _fewest_kept(names: list[str], bound: float, everything: float, off: Callable[[list[str]], float]) -> int:
    """How many of the worst weights have to stay as they are for the others' error to be within a bound."""
    if everything <= bound:
        return 0
    few, many = 0, len(names)
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if off(names[middle:]) <= bound else (middle, many)
    return many


def rounded_weight(weight: np.ndarray, dims: tuple[int, ...], kind: str, group: int | None) -> np.ndarray | None:
    """What products read of a weight that is rounded, in the weight's type; None for one that is left as it is.

    See quantize-weights for the arithmetic.

    Args:
        dims: those of the weight along which products are added up; the last one is that of groups.
    """
    numbers = weight.astype(np.float32)
    if kind == "bf16":
        return _as_bf16(weight) if weight.dtype == np.float32 else None
    if numbers.nbytes < _LEAST_BYTES or (group and weight.shape[dims[-1]] % group):
        return None
    cut, axes = numbers, tuple(dims)
    if group:
        last = dims[-1]
        cut = numbers.reshape(*weight.shape[:last], -1, group, *weight.shape[last + 1 :])
        axes = (*(dim + (dim > last) for dim in dims[:-1]), last + 1)
    steps = np.float32(127.0 if kind == "int8" else 7.5)
    scale = np.maximum(np.abs(cut).max(axes, keepdims=True, initial=0) / steps, np.float32(2.0**-126))
    if kind == "int4":
        scale = _as_bf16(scale * np.float32(1 + 2.0**-8))
    whole = np.rint(cut / scale)
    whole = whole if kind == "int8" else whole.clip(-8, 7)
    return (whole * scale).astype(weight.dtype).reshape(weight.shape)


def _as_bf16(numbers: np.ndarray) -> np.ndarray:
    """Numbers in f32 rounded to bf16, halves to even; NaN stay."""
    bits = np.ascontiguousarray(numbers, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(numbers), numbers, rounded.view(np.float32))


def _summed_dims(executable: Executable) -> dict[str, tuple[int, ...]]:
    """The weights that products in f32 or 16 bits read, with the dims along which these add up."""
    from pipeline.mlir import context, function, parse
    from pipeline.passes.layout.weight_products import weight_products

    found: dict[str, tuple[int, ...]] = {}
    with context() as ctx:
        module = parse(executable.ir("linalg"), ctx)
        for product in weight_products(function(module.operation, "main")):
            found.setdefault(product.name, product.summed)
    return {name: dims for name, dims in found.items() if dims}


def _distance(results: Results, others: Results) -> tuple[float, float | None]:
    """How far results are from others, relative to their size; and the divergence of logits, if there are any."""
    pairs = [(value, others[name]) for name, value in results.items() if _is_real(value)]
    off = sum(float(np.square(as_doubles(one) - as_doubles(other)).sum()) for one, other in pairs)
    size = sum(float(np.square(as_doubles(one)).sum()) for one, _ in pairs)
    logits = [pair for pair in pairs if pair[0].ndim and pair[0].shape[-1] >= _CLASSES]
    divergences = [_divergence(as_doubles(one), as_doubles(other)) for one, other in logits]
    return float(np.sqrt(off / size)) if size else 0.0, max(divergences, default=None)


def _is_real(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.size > 0 and not np.iscomplexobj(value) and value.dtype.kind in "fV"


def _divergence(logits: np.ndarray, others: np.ndarray) -> float:
    """Kullback-Leibler of softmax(others) from softmax(logits), in nats, the mean of all rows."""
    first, second = (one - np.logaddexp.reduce(one, -1, keepdims=True) for one in (logits, others))
    return float((np.exp(first) * (first - second)).sum(-1).mean())


def _line(one: Rounded) -> str:
    divergence = "" if one.divergence is None else f"  KL {one.divergence:<9.3g}"
    return f"  {one.error:<9.3g}{divergence}  {one.name}\n"
