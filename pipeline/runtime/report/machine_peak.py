"""What this machine can do, measured: multiply-adds in registers, copies through memory; one thread, f32."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pipeline.runtime.native.cpu_features import host_features
from pipeline.runtime.native.object_loader import NativeCode

#: As many accumulators as hide the latency of a multiply-add on every port, and fit the registers.
_ACCUMULATORS = 12

_LOOPS = 200_000
_COPIED_BYTES = 64 << 20


@dataclass(frozen=True)
class Peak:
    """Arithmetic operations and bytes read and written per second, of one thread.

    Attributes:
        operations: None where there is no code generator to measure it with, in an installation that only runs code.
    """

    operations: float | None
    bytes: float

    def share(self, seconds: float, operations: int, moved: int) -> float | None:
        """Which part of `seconds` the work would take at the peak, by what bounds it more, memory or arithmetic.

        Data in caches moves faster than through memory, which the peak is of: kernels on little data can have more
        than 1. None where the peak of arithmetic is not known.
        """
        if self.operations is None:
            return None
        return max(operations / self.operations, moved / self.bytes) / seconds if seconds else 0.0


@functools.cache
def measured_peak() -> Peak:
    """Measures it, in a tenth of a second, once in a process."""
    source, target = np.ones(_COPIED_BYTES, np.uint8), np.ones(_COPIED_BYTES, np.uint8)
    moved = 2 * _COPIED_BYTES / _best(lambda: np.copyto(target, source))
    return Peak(None if importlib.util.find_spec("llvmlite") is None else _operations(), moved)


def _operations() -> float:
    lanes = 16 if "avx512f" in host_features() else 8 if "avx2" in host_features() else 4
    run = NativeCode([_multiply_adds(lanes)]).entry("multiply_adds")
    result = np.zeros(lanes + 16, np.float32)
    address = ctypes.c_void_p(result.ctypes.data).value or 0
    return 2 * lanes * _ACCUMULATORS * _LOOPS / _best(lambda: run(address))


def _best(work: Callable[[], None]) -> float:
    times = []
    for _ in range(5):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def _multiply_adds(lanes: int) -> bytes:
    """An object file with `void multiply_adds(float *result)`: a loop of independent multiply-adds on vectors."""
    from llvmlite import binding
    from llvmlite import ir as llvm_ir

    from pipeline.llvm import host_cpu

    floats, words = llvm_ir.FloatType(), llvm_ir.IntType(64)
    module = llvm_ir.Module()
    vector = llvm_ir.VectorType(floats, lanes)
    fma = llvm_ir.Function(module, llvm_ir.FunctionType(vector, [vector] * 3), f"llvm.fma.v{lanes}f32")
    function = llvm_ir.Function(
        module, llvm_ir.FunctionType(llvm_ir.VoidType(), [llvm_ir.PointerType()]), "multiply_adds"
    )
    start, body, done = (function.append_basic_block() for _ in range(3))
    builder = llvm_ir.IRBuilder(start)
    value = builder.load(function.args[0], typ=vector, align=4)
    builder.branch(body)
    builder.position_at_end(body)
    count = builder.phi(words)
    count.add_incoming(words(0), start)
    sums = [builder.phi(vector) for _ in range(_ACCUMULATORS)]
    following = [builder.call(fma, [accumulator, value, value]) for accumulator in sums]
    for number, (accumulator, new) in enumerate(zip(sums, following, strict=True)):
        accumulator.add_incoming(llvm_ir.Constant(vector, [float(number)] * lanes), start)
        accumulator.add_incoming(new, body)
    after = builder.add(count, words(1))
    count.add_incoming(after, body)
    builder.cbranch(builder.icmp_signed("<", after, words(_LOOPS)), body, done)
    builder.position_at_end(done)
    total = following[0]
    for term in following[1:]:
        total = builder.fadd(total, term)
    builder.store(total, function.args[0], align=4)
    builder.ret_void()
    name, features = host_cpu()
    machine = binding.Target.from_default_triple().create_target_machine(
        cpu=name, features=features, opt=2, reloc="pic", codemodel="small"
    )
    return machine.emit_object(binding.parse_assembly(str(module)))
