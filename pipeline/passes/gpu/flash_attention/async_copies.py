"""A tile of the keys or values of an attention in shared memory, which cp.async brings where it can."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.ir.constants import as_index
from pipeline.ir.indexing_maps import coefficient
from pipeline.mlir import arith, ir, nvgpu
from pipeline.passes.gpu.flash_attention.kernel import Streamed, shared_tile
from pipeline.passes.gpu.flash_attention.op_graph import GenericStep
from pipeline.passes.gpu.thread.thread_results import indices, plus, unravel
from pipeline.passes.gpu.thread.vector_access import is_aligned

#: By how many elements rows are longer than what they hold, so that neighbours in a column lie in different banks.
PADDING = 8

#: The elements of 16 bytes.
_CHUNK = 8


class Copied:
    """A tile of keys or of values in shared memory: of both, dims are the keys and what is along one of them.

    Where what lies side by side in memory allows it, cp.async brings it, 16 bytes at a time, and zeros for what is
    beyond the last key. `kind` is the type of its elements; `transposed` says that the same place of neighbouring keys
    lies side by side.
    """

    def __init__(
        self,
        block: Streamed,
        kind: ir.Type,
        step: GenericStep,
        operand: int,
        keys: tuple[int, int],
        along: tuple[int, int],
        transposed: bool,
    ):
        self._block, self._kind, self._step, self._operand = block, kind, step, operand
        self.transposed = transposed
        self.is_of_keys = step == block.attention.scores
        self.sizes, self.limits = ((along[0], keys[0]), (along[1], keys[1])) if transposed else (
            (keys[0], along[0]), (keys[1], along[1])
        )  # fmt: skip
        self.shared = shared_tile(*self.sizes, kind, PADDING)
        self.is_wide = self._can_be_wide()

    @property
    def along_sum(self) -> bool:
        """Whether the sum of the product goes along rows of the tile."""
        return self.is_of_keys and not self.transposed

    def _can_be_wide(self) -> bool:
        """Whether 16 bytes of a row of the tile are side by side in memory, at a multiple of 16 bytes."""
        step, buffer = self._step, self._step.view.operands[self._operand]
        if step.sources[self._operand] is not None or ir.MemRefType(buffer.type).element_type != self._kind:
            return False
        if self.sizes[0] * self.sizes[1] // _CHUNK % self._block.tile.threads:
            return False
        *outer, last = step.view.maps[self._operand].results
        if not isinstance(last, ir.AffineDimExpr) or self.limits[1] % _CHUNK or not is_aligned(buffer, _CHUNK):
            return False
        inner = ir.AffineDimExpr(last).position
        return inner == self._inner_loop() and all(coefficient(expression, inner) == 0 for expression in outer)

    def _inner_loop(self) -> int:
        """The loop along rows of the tile."""
        attention = self._block.attention
        if not self.is_of_keys:
            return attention.value_loop
        if self.transposed:
            return (attention.scores.large(2) or [])[attention.key]
        return next(loop for loop, reduces in enumerate(attention.scores.view.reductions) if reduces)

    def fill(self, first: ir.Value, element: Callable[[ir.Value, ir.Value], ir.Value]) -> None:
        """Element by element, from the key `first` on; `element` takes a key and a place along it."""

        def at(outer: ir.Value, inner: ir.Value) -> ir.Value:
            place, along = (inner, outer) if self.transposed else (outer, inner)
            return element(plus(first, place), along)

        limits = (self.limits[0], self.sizes[1]) if self.transposed else (self.sizes[0], self.limits[1])
        self._block.fill(self.shared, self.sizes, limits, at)

    def fetch(self, first: ir.Value) -> ir.Value:
        """Sets copies from the key `first` on under way; returns what to wait for."""
        chunks = self.sizes[0] * self.sizes[1] // _CHUNK
        threads = self._block.tile.threads
        tokens = [self._fetch_chunk(first, number_ * threads) for number_ in range(chunks // threads)]
        return nvgpu.DeviceAsyncCreateGroupOp(tokens).result

    def _fetch_chunk(self, first: ir.Value, start: int) -> ir.Value:
        outer, chunk = unravel(plus(self._block.thread, as_index(start)), [self.sizes[0], self.sizes[1] // _CHUNK])
        inner = arith.MulIOp(chunk, as_index(_CHUNK)).result
        place, along = (inner, outer) if self.transposed else (outer, inner)
        key = plus(first, place)
        keys, width = self.limits[::-1] if self.transposed else self.limits
        inside = arith.CmpIOp(arith.CmpIPredicate.ult, key, as_index(keys)).result
        if width % 16:
            is_along = arith.CmpIOp(arith.CmpIPredicate.ult, along, as_index(width)).result
            inside = arith.AndIOp(inside, is_along).result
        size = arith.SelectOp(inside, as_index(_CHUNK), as_index(0)).result
        block, step = self._block, self._step
        loops = block.at_key(key, along) if self.is_of_keys else block.at_value(key, along)
        token = ir.Type.parse("!nvgpu.device.async.token")
        return nvgpu.DeviceAsyncCopyOp(
            self.shared,
            [outer, inner],
            step.view.operands[self._operand],
            indices(step.view.maps[self._operand], loops),
            _CHUNK,
            srcElements=size,
            bypassL1=True,
            results=[token],
        ).result
