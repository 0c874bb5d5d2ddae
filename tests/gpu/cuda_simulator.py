"""A CUDA device that is simulated on the CPU, for tests on machines without one: runs the LLVM IR that becomes PTX.

NVVM's intrinsics are replaced by reads of a context (which thread of which block this is) and by calls of helpers; the
result is compiled for the CPU by llvmlite. The threads of a block run one after the other, each up to its next barrier:
there it hands on to the next thread, on a stack of its own, by glibc's swapcontext. Blocks come one after the other.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import simulated_tensor_cores as tensor_cores
import simulated_warpgroups as warpgroups
import simulated_wgmma_groups as wgmma_groups
from llvmlite import binding

from pipeline.llvm import host_cpu, initialize_llvm
from pipeline.runtime.device.device_code import DeviceKernel
from pipeline.runtime.device.host_plan import View
from pipeline.runtime.device_executable import DeviceExecutable
from pipeline.runtime.interface.signature import DTYPE_BYTES
from pipeline.runtime.interface.storage_types import numpy_dtype
from pipeline.targets.common.llvm_text import to_llvm22

#: The most blocks along one dimension of a launch.
MOST_BLOCKS = 65535

#: Where a context has which number: three of each.
_REGISTERS = {
    f"{name}.{dim}": 3 * row + column
    for row, name in enumerate(("tid", "ctaid", "ntid", "nctaid"))
    for column, dim in enumerate("xyz")
}
_OWN, _FOLLOWING, _SLOTS = 64, 72, 80  # byte offsets in a context
_TYPES = {"index": "i64", "i64": "i64", "i32": "i32", "f32": "float", "f64": "double"}


class SimulatedDevice:
    """See `pipeline.runtime.device.device.Device`."""

    def __init__(self, kernels: Sequence[DeviceKernel], llvm: str):
        self.kernels = kernels
        self.launches: list[str] = []
        self._llvm = llvm
        self._engine = _compile(llvm, kernels)

    def allocate(self, dtype: str, elements: int) -> np.ndarray:
        return np.full(max(1, elements * DTYPE_BYTES[dtype]), 0xA5, np.uint8)

    def arena(self, size: int) -> np.ndarray:
        return np.full(size, 0xA5, np.uint8)

    def upload(self, view: View, data: np.ndarray) -> None:
        raw = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        first = view.base * DTYPE_BYTES[view.dtype]
        view.buffer[first : first + raw.size] = raw

    def launch(self, kernel: int, threads: int, arguments: Sequence[Any]) -> None:
        info = self.kernels[kernel]
        blocks = min(info.blocks(threads), MOST_BLOCKS)
        if not blocks:
            return
        self.launches.append(info.name)
        views, numbers = info.split(arguments)
        slots = (ctypes.c_int64 * (len(views) + len(numbers)))(*map(_address, views))
        for place, (kind, value) in enumerate(numbers, start=len(views)):
            slots[place] = _bits(kind, value)
        self._run(info, blocks, slots)

    def read_number(self, buffer: np.ndarray, dtype: str, place: int) -> Any:
        return (
            buffer.view(np.uint8)[place * DTYPE_BYTES[dtype] :][: DTYPE_BYTES[dtype]].view(numpy_dtype(dtype))[0].item()
        )

    def download(self, views: Sequence[View]) -> list[np.ndarray]:
        found = []
        for view in views:
            size = DTYPE_BYTES[view.dtype]
            raw = view.buffer[view.base * size : (view.base + view.elements) * size]
            found.append(raw.view(numpy_dtype(view.dtype)).reshape(view.sizes).copy())
        return found

    def _run(self, info: DeviceKernel, blocks: int, slots: Any) -> None:
        if _has_barriers(self._llvm, info.name):
            _run_together(self._engine.get_function_address(f"sim_{info.name}"), info.block, blocks, slots)
            return
        address = self._engine.get_function_address(f"sim_all_{info.name}")
        run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(address)
        context = _Context()
        context.place(0, 0, info.block, blocks)
        run(ctypes.addressof(context), ctypes.addressof(slots))


class SimulatedExecutable(DeviceExecutable):
    """An executable for CUDA that runs on the simulator; its IR has to be at hand."""

    def make_device(self) -> SimulatedDevice:
        return SimulatedDevice(self._code.launches, self.ir("llvm"))


class _Context(ctypes.Structure):
    """What a thread knows: where it is in the launch, and whom it hands on to at a barrier."""

    _fields_ = [
        ("registers", ctypes.c_int32 * 12),
        ("padding", ctypes.c_int32 * 4),
        ("own", ctypes.c_void_p),
        ("following", ctypes.c_void_p),
        ("slots", ctypes.c_void_p),
        ("queues", ctypes.c_void_p),
        ("records", ctypes.c_void_p),
    ]

    def place(self, thread: int, block: int, threads: int, blocks: int) -> None:
        self.registers[:] = [thread, 0, 0, block, 0, 0, threads, 1, 1, blocks, 1, 1]


#: glibc's ucontext_t on x86-64: its size, and where it has the next context, the stack and the stack's size.
_UCONTEXT, _LINK, _STACK, _STACK_SIZE = 1024, 8, 16, 32
_STACK_BYTES = 1 << 16
_libc = ctypes.CDLL(None)


def _run_together(function: int, threads: int, blocks: int, arguments: Any) -> None:
    """All threads of a block in turns, as barriers need it."""
    states = ctypes.create_string_buffer(_UCONTEXT * (threads + 1))
    first = ctypes.addressof(states)
    stacks = ctypes.create_string_buffer(_STACK_BYTES * threads)
    slots = np.zeros(threads * tensor_cores.SLOT, np.uint8)
    queues = np.zeros(threads * tensor_cores.QUEUE, np.uint8)
    records = np.zeros(threads * wgmma_groups.RECORD, np.uint8)
    state = [first + _UCONTEXT * number for number in range(threads + 1)]  # the last one is ours
    contexts = [
        _Context(
            own=state[t],
            following=state[(t + 1) % threads],
            slots=slots.ctypes.data,
            queues=queues.ctypes.data,
            records=records.ctypes.data,
        )  # fmt: skip
        for t in range(threads)
    ]
    for block in range(blocks):
        queues[:] = records[:] = 0
        for thread, context in enumerate(contexts):
            context.place(thread, block, threads, blocks)
            _libc.getcontext(ctypes.c_void_p(state[thread]))
            for offset, value in (
                (_LINK, state[thread + 1]),
                (_STACK, ctypes.addressof(stacks) + _STACK_BYTES * thread),
                (_STACK_SIZE, _STACK_BYTES),
            ):
                ctypes.c_uint64.from_address(state[thread] + offset).value = value
            _libc.makecontext(
                ctypes.c_void_p(state[thread]), ctypes.c_void_p(function), 2,
                ctypes.c_void_p(ctypes.addressof(context)), ctypes.c_void_p(ctypes.addressof(arguments)),
            )  # fmt: skip
        _libc.swapcontext(ctypes.c_void_p(state[threads]), ctypes.c_void_p(state[0]))


def _address(view: View) -> int:
    return view.buffer.ctypes.data + view.base * DTYPE_BYTES[view.dtype]


def _bits(kind: str, value: Any) -> int:
    if kind == "f32":
        return int(np.float32(value).view(np.int32))
    return int(np.float64(value).view(np.int64)) if kind == "f64" else int(value)


def _body(llvm: str, kernel: str) -> str:
    found = re.search(rf"^define [^\n]*@{re.escape(kernel)}\(.*?^}}", llvm, re.M | re.S)
    assert found is not None, kernel
    return found[0]


def _has_barriers(llvm: str, kernel: str) -> bool:
    body = _body(llvm, kernel)
    return "llvm.nvvm.barrier" in body or "llvm.nvvm.shfl" in body or tensor_cores.uses_warps(body)


def _compile(llvm: str, kernels: Sequence[DeviceKernel]) -> Any:
    initialize_llvm()
    cpu, features = host_cpu()
    machine = binding.Target.from_default_triple().create_target_machine(
        cpu=cpu, features=features, opt=2, codemodel="jitdefault", jit=True
    )
    text = (
        _for_cpu(to_llvm22(llvm))
        + _HELPERS
        + tensor_cores.HELPERS
        + warpgroups.HELPERS
        + "".join(map(_driver, kernels))
    )
    module = binding.parse_assembly(text)
    module.verify()
    engine = binding.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine


def _for_cpu(llvm: str) -> str:
    """NVVM's intrinsics and address spaces → a context and helpers."""
    llvm = re.sub(r"^(target |attributes #|declare .*@llvm\.nvvm).*$", "", llvm, flags=re.M)
    llvm = re.sub(r"^(define .*?) #\d+ \{$", r"\1 {", llvm, flags=re.M)
    llvm = llvm.replace("ptx_kernel ", "").replace(" addrspace(3)", "")
    llvm = warpgroups.for_cpu(tensor_cores.for_cpu(llvm))
    llvm = re.sub(r"addrspacecast ptr (\S+) to ptr", r"getelementptr i8, ptr \1, i64 0", llvm)
    llvm = re.sub(r"^(define void @[^(]*\()", r"\1ptr %ctx, ", llvm, flags=re.M).replace("ptr %ctx, )", "ptr %ctx)")
    llvm = re.sub(
        r"call [^@\n]*@llvm\.nvvm\.read\.ptx\.sreg\.(\w+\.[xyz])\(\)",
        lambda m: f"call i32 @sim_register(ptr %ctx, i32 {_REGISTERS[m[1]]})",
        llvm,
    )
    llvm = re.sub(r"call void @llvm\.nvvm\.barrier[^(]*\([^)]*\)", "call void @sim_barrier(ptr %ctx)", llvm)
    llvm = re.sub(
        r"call (float|i32) @llvm\.nvvm\.shfl\.sync\.bfly\.\w+"
        r"\(i32 [^,]+, (float|i32) ([^,]+), i32 ([^,]+), i32 [^)]+\)",
        r"call \1 @sim_butterfly_\1(ptr %ctx, \2 \3, i32 \4)",
        llvm,
    )
    llvm = re.sub(r"@__nv_(\w+)\(", lambda m: f"@{_LIBM.get(m[1], m[1])}(", llvm)
    return re.sub(r"^declare .*@sim_.*$", "", llvm, flags=re.M)


#: Functions of libdevice that C calls something else.
_LIBM = {"rsqrtf": "sim_rsqrtf", "rsqrt": "sim_rsqrt", "fast_expf": "expf"}

_HELPERS = f"""
declare i32 @swapcontext(ptr, ptr)
define internal i32 @sim_register(ptr %ctx, i32 %n) alwaysinline {{
  %p = getelementptr i32, ptr %ctx, i32 %n
  %v = load i32, ptr %p
  ret i32 %v
}}
define internal void @sim_barrier(ptr %ctx) noinline {{
  %p = getelementptr i8, ptr %ctx, i64 {_OWN}
  %own = load ptr, ptr %p
  %q = getelementptr i8, ptr %ctx, i64 {_FOLLOWING}
  %following = load ptr, ptr %q
  %r = call i32 @swapcontext(ptr %own, ptr %following)
  ret void
}}
define internal i32 @sim_butterfly_i32(ptr %ctx, i32 %v, i32 %mask) noinline {{
  %p = getelementptr i8, ptr %ctx, i64 {_SLOTS}
  %slots = load ptr, ptr %p
  %t = load i32, ptr %ctx
  %mine = getelementptr i64, ptr %slots, i32 %t
  store i32 %v, ptr %mine
  call void @sim_barrier(ptr %ctx)
  %o = xor i32 %t, %mask
  %other = getelementptr i64, ptr %slots, i32 %o
  %x = load i32, ptr %other
  call void @sim_barrier(ptr %ctx)
  ret i32 %x
}}
define internal float @sim_butterfly_float(ptr %ctx, float %v, i32 %mask) noinline {{
  %i = bitcast float %v to i32
  %r = call i32 @sim_butterfly_i32(ptr %ctx, i32 %i, i32 %mask)
  %f = bitcast i32 %r to float
  ret float %f
}}
declare float @llvm.sqrt.f32(float)
declare double @llvm.sqrt.f64(double)
define internal float @sim_rsqrtf(float %x) {{
  %r = call float @llvm.sqrt.f32(float %x)
  %q = fdiv float 1.0, %r
  ret float %q
}}
define internal double @sim_rsqrt(double %x) {{
  %r = call double @llvm.sqrt.f64(double %x)
  %q = fdiv double 1.0, %r
  ret double %q
}}
"""


def _driver(kernel: DeviceKernel) -> str:
    """sim_<kernel>(context, arguments): one thread; sim_all_<kernel>: every thread of every block, one by one."""
    buffers, loads, passed = 0, "", []
    order: list[tuple[int, str]] = []  # the slot and type of each parameter of the kernel, in its order
    numbers = [kind for kind in kernel.arguments if kind[0] == "number"]
    views = [kind for kind in kernel.arguments if kind[0] == "buffer"]
    next_number = len(views)
    for kind in kernel.arguments:
        if kind[0] == "buffer":
            order.append((buffers, "ptr"))
            buffers += 1
        else:
            order.append((next_number, _TYPES[kind[1]]))
            next_number += 1
    along = sum(len(kind[2]) + bool(kind[3]) + len(kind[4]) for kind in views)
    first = len(views) + len(numbers)
    order += [(first + number, "i64") for number in range(along)]
    for number, (slot, kind) in enumerate(order):
        loads += (
            f"  %p{number} = getelementptr i64, ptr %args, i64 {slot}\n  %a{number} = load {kind}, ptr %p{number}\n"
        )
        passed.append(f"{kind} %a{number}")
    call = ", ".join(["ptr %ctx", *passed])
    return f"""
define void @sim_{kernel.name}(ptr %ctx, ptr %args) {{
{loads}  call void @{kernel.name}({call})
  ret void
}}
define void @sim_all_{kernel.name}(ptr %ctx, ptr %args) {{
entry:
{loads}  %bp = getelementptr i32, ptr %ctx, i32 3
  %np = getelementptr i32, ptr %ctx, i32 9
  %blocks = load i32, ptr %np
  br label %block
block:
  %b = phi i32 [ 0, %entry ], [ %b2, %end ]
  store i32 %b, ptr %bp
  br label %thread
thread:
  %t = phi i32 [ 0, %block ], [ %t2, %thread ]
  store i32 %t, ptr %ctx
  call void @{kernel.name}({call})
  %t2 = add i32 %t, 1
  %more = icmp slt i32 %t2, {kernel.block}
  br i1 %more, label %thread, label %end
end:
  %b2 = add i32 %b, 1
  %again = icmp slt i32 %b2, %blocks
  br i1 %again, label %block, label %done
done:
  ret void
}}
"""
