"""How much memory an executable takes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.runtime.interface.aligned_memory import byte_size, offsets
from pipeline.runtime.interface.code import Code
from pipeline.runtime.interface.signature import Signature, TensorType

_OF_THE_MODEL = ("argument", "weight", "prepared")


@dataclass(frozen=True)
class Footprint:
    """Bytes.

    Attributes:
        weights: the model's parameters, buffers and constants.
        unread: how many bytes of these no call reads, since something was prepared of them: of an executable that was
            loaded they stay in the file, else they belong to the model.
        prepared: what was computed from them at load and is kept, such as folded and transposed weights.
        workspace: temporaries of a call and scratch of the threads that share its work, once for each thread that
            calls; kept between calls.
        results: what a call returns, as far as sizes are known; the memory of large ones is kept for the next call.
        code: machine code.
        complete: whether that is all; where sizes are known at the call only, the code allocates more as it runs.
    """

    weights: int
    unread: int
    prepared: int
    workspace: int
    results: int
    code: int
    complete: bool

    @property
    def total(self) -> int:
        """All of it but `unread`, with one thread that calls."""
        return self.weights - self.unread + self.prepared + self.workspace + self.results + self.code

    @property
    def call(self) -> int:
        """What the first call adds to what loading took."""
        return self.workspace + self.results


def footprint(code: Code, signature: Signature, threads: int = 1) -> Footprint:
    """Of an executable of this code, where so many threads share the work of a kernel."""
    results = [result.type for result in signature.results if result.kind == "computed" and result.type is not None]
    known = [kind for kind in results if all(isinstance(size, int) for size in kind.shape)]
    given = [
        value
        for source, value in zip(code.main_sources, code.main.parameters, strict=False)
        if source.kind in _OF_THE_MODEL
    ]
    unread = set(code.prepared_weights(weight.name for weight in signature.weights))
    return Footprint(
        weights=_sum(weight.type for weight in signature.weights),
        unread=_sum(weight.type for weight in signature.weights if weight.name in unread),
        prepared=offsets(list(code.kept.values()))[-1],
        workspace=code.workspace + (threads - 1) * code.thread_bytes,
        results=_sum(known),
        code=sum(map(len, code.objects)),
        complete=not code.main.results and not any(value.dynamic_dims for value in given),
    )


def _sum(kinds: Iterable[TensorType]) -> int:
    return sum(map(byte_size, kinds))
