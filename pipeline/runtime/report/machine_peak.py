"""What this machine can do, measured: multiply-adds in registers, copies through memory; one thread, f32."""

from __future__ import annotations

import ctypes
import functools
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from llvmlite import binding
from llvmlite import ir as llvm_ir

from pipeline.runtime.native.object_loader import NativeCode, host_cpu, host_features

_FLOAT, _I64 = llvm_ir.FloatType(), llvm_ir.IntType(64)

#: As many accumulators as hide the latency of a multiply-add on every port, and fit the registers.
_ACCUMULATORS = 12

_LOOPS = 200_000
_COPIED_BYTES = 64 << 20


@dataclass(frozen=True)
class Peak:
    """Arithmetic operations and bytes read and written per second, of one thread."""

    operations: float
    bytes: float

    def share(self, seconds: float, operations: int, moved: int) -> float:
        """Which part of `seconds` the work would take at the peak, by what bounds it more, memory or arithmetic.

        Data in caches moves faster than through memory, which the peak is of: kernels on little data can have more
        than 1.
        """
        return max(operations / self.operations, moved / self.bytes) / seconds if seconds else 0.0


@functools.cache
def measured_peak() -> Peak:
    """Measures it, in a tenth of a second, once in a process."""
    lanes = 16 if "avx512f" in host_features() else 8 if "avx2" in host_features() else 4
    native = NativeCode([_multiply_adds(lanes)])
    run = native.entry("multiply_adds")
    result = np.zeros(lanes + 16, np.float32)
    address = ctypes.c_void_p(result.ctypes.data).value or 0
    source, target = np.ones(_COPIED_BYTES, np.uint8), np.ones(_COPIED_BYTES, np.uint8)
    return Peak(
        operations=2 * lanes * _ACCUMULATORS * _LOOPS / _best(lambda: run(address)),
        bytes=2 * _COPIED_BYTES / _best(lambda: np.copyto(target, source)),
    )


def _best(work: Callable[[], None]) -> float:
    times = []
    for _ in range(5):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def _multiply_adds(lanes: int) -> bytes:
    """An object file with `void multiply_adds(float *result)`: a loop of independent multiply-adds on vectors."""
    module = llvm_ir.Module()
    vector = llvm_ir.VectorType(_FLOAT, lanes)
    fma = llvm_ir.Function(module, llvm_ir.FunctionType(vector, [vector] * 3), f"llvm.fma.v{lanes}f32")
    function = llvm_ir.Function(
        module, llvm_ir.FunctionType(llvm_ir.VoidType(), [llvm_ir.PointerType()]), "multiply_adds"
    )
    start, body, done = (function.append_basic_block() for _ in range(3))
    builder = llvm_ir.IRBuilder(start)
    value = builder.load(function.args[0], typ=vector, align=4)
    builder.branch(body)
    builder.position_at_end(body)
    count = builder.phi(_I64)
    count.add_incoming(_I64(0), start)
    sums = [builder.phi(vector) for _ in range(_ACCUMULATORS)]
    following = [builder.call(fma, [accumulator, value, value]) for accumulator in sums]
    for number, (accumulator, new) in enumerate(zip(sums, following, strict=True)):
        accumulator.add_incoming(llvm_ir.Constant(vector, [float(number)] * lanes), start)
        accumulator.add_incoming(new, body)
    after = builder.add(count, _I64(1))
    count.add_incoming(after, body)
    builder.cbranch(builder.icmp_signed("<", after, _I64(_LOOPS)), body, done)
    builder.position_at_end(done)
    total = following[0]
    for term in following[1:]:
        total = builder.fadd(total, term)
    builder.store(total, function.args[0], align=4)
    builder.ret_void()
    name, features = host_cpu()
    machine = binding.Target.from_default_triple().create_target_machine(
        cpu=name, features=features, opt=2, codemodel="jitdefault", jit=True
    )
    return machine.emit_object(binding.parse_assembly(str(module)))
