"""What NVVM's instructions for tensor cores do, as LLVM IR for the CPU: mma.sync, ldmatrix, cp.async.

The threads of a warp hand each other their registers through the slots of their context. Copies that are under way are
done as late as possible, when a wait says so: a wait that is missing leaves its mark on the results.
"""

from __future__ import annotations

import re

#: How many bytes each thread has in the slots.
SLOT = 64

#: The copies that a thread may have under way, and the bytes of its queue of them: number, group, then for each where
#: to, where from, how many bytes, and which group it belongs to.
_UNDER_WAY = 64
QUEUE = 8 + 24 * _UNDER_WAY


def for_cpu(llvm: str) -> str:
    """Calls of the intrinsics become calls of the helpers."""
    llvm = re.sub(r'asm "cvt\.rn\.bf16\.f32 [^"]*", "=h,f"\(', "@sim_round_bf16(", llvm)
    llvm = llvm.replace(" addrspace(1)", "")
    llvm = re.sub(r"@llvm\.nvvm\.cp\.async\.c[ag]\.shared\.global\.(\d+)\.s\(", r"@sim_copy_\1(ptr %ctx, ", llvm)
    llvm = llvm.replace("@llvm.nvvm.cp.async.commit.group()", "@sim_commit(ptr %ctx)")
    llvm = llvm.replace("@llvm.nvvm.cp.async.wait.group(", "@sim_wait(ptr %ctx, ")
    llvm = re.sub(r"@llvm\.nvvm\.ldmatrix\.sync\.aligned\.m8n8\.x4\.b16\.p3\(", "@sim_matrices(ptr %ctx, ", llvm)
    llvm = re.sub(
        r"@llvm\.nvvm\.ldmatrix\.sync\.aligned\.m8n8\.x4\.trans\.b16\.p3\(", "@sim_transposed(ptr %ctx, ", llvm
    )
    llvm = llvm.replace("@llvm.nvvm.mma.m16n8k16.row.col.bf16(", "@sim_multiply_bf16(ptr %ctx, ")
    llvm = llvm.replace("@llvm.nvvm.mma.m16n8k8.row.col.tf32(", "@sim_multiply_tf32(ptr %ctx, ")
    return llvm.replace("@llvm.nvvm.mma.m16n8k16.row.col.f32.f32(", "@sim_multiply_f16(ptr %ctx, ")


def uses_warps(body: str) -> bool:
    """Whether a kernel has instructions that the threads of a warp do together."""
    return "llvm.nvvm.mma" in body or "llvm.nvvm.ldmatrix" in body


#: Rounds to the nearest, ties to even; what is no number becomes the number that PTX says.
_ROUND = """
define internal i16 @sim_round_bf16(float %x) alwaysinline {
  %bits = bitcast float %x to i32
  %above = lshr i32 %bits, 16
  %odd = and i32 %above, 1
  %up = add i32 %odd, 32767
  %sum = add i32 %bits, %up
  %high = lshr i32 %sum, 16
  %rounded = trunc i32 %high to i16
  %nan = fcmp uno float %x, %x
  %r = select i1 %nan, i16 32767, i16 %rounded
  ret i16 %r
}
"""

_COPY = f"""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.trap()
define internal ptr @sim_queue(ptr %ctx) alwaysinline {{
  %p = getelementptr i8, ptr %ctx, i64 88
  %queues = load ptr, ptr %p
  %t = load i32, ptr %ctx
  %n = mul i32 %t, {QUEUE}
  %q = getelementptr i8, ptr %queues, i32 %n
  ret ptr %q
}}
define internal ptr @sim_entry(ptr %q, i32 %number) alwaysinline {{
  %n = mul i32 %number, 24
  %b = add i32 %n, 8
  %e = getelementptr i8, ptr %q, i32 %b
  ret ptr %e
}}
define internal void @sim_copy_16(ptr %ctx, ptr %to, ptr %from, i32 %size) noinline {{
  %q = call ptr @sim_queue(ptr %ctx)
  %n = load i32, ptr %q
  %full = icmp uge i32 %n, {_UNDER_WAY}
  br i1 %full, label %bad, label %good
bad:
  call void @llvm.trap()
  unreachable
good:
  %gp = getelementptr i8, ptr %q, i64 4
  %g = load i32, ptr %gp
  %e = call ptr @sim_entry(ptr %q, i32 %n)
  %e1 = getelementptr i8, ptr %e, i64 8
  %e2 = getelementptr i8, ptr %e, i64 16
  %e3 = getelementptr i8, ptr %e, i64 20
  store ptr %to, ptr %e
  store ptr %from, ptr %e1
  store i32 %size, ptr %e2
  store i32 %g, ptr %e3
  %n1 = add i32 %n, 1
  store i32 %n1, ptr %q
  ret void
}}
define internal void @sim_commit(ptr %ctx) noinline {{
  %q = call ptr @sim_queue(ptr %ctx)
  %gp = getelementptr i8, ptr %q, i64 4
  %g = load i32, ptr %gp
  %g1 = add i32 %g, 1
  store i32 %g1, ptr %gp
  ret void
}}
define internal void @sim_wait(ptr %ctx, i32 %pending) noinline {{
entry:
  %q = call ptr @sim_queue(ptr %ctx)
  %gp = getelementptr i8, ptr %q, i64 4
  %n = load i32, ptr %q
  %g = load i32, ptr %gp
  br label %head
head:
  %i = phi i32 [ 0, %entry ], [ %i1, %next ]
  %kept = phi i32 [ 0, %entry ], [ %kept1, %next ]
  %more = icmp ult i32 %i, %n
  br i1 %more, label %body, label %end
body:
  %e = call ptr @sim_entry(ptr %q, i32 %i)
  %e1 = getelementptr i8, ptr %e, i64 8
  %e2 = getelementptr i8, ptr %e, i64 16
  %e3 = getelementptr i8, ptr %e, i64 20
  %own = load i32, ptr %e3
  %age = sub i32 %g, %own
  %done = icmp ugt i32 %age, %pending
  br i1 %done, label %copy, label %keep
copy:
  call void @sim_wg_set(ptr %ctx, i32 3, i32 1)
  %to = load ptr, ptr %e
  %from = load ptr, ptr %e1
  %size = load i32, ptr %e2
  %bytes = zext i32 %size to i64
  call void @llvm.memset.p0.i64(ptr %to, i8 0, i64 16, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)
  br label %next
keep:
  %k = call ptr @sim_entry(ptr %q, i32 %kept)
  %same = icmp eq i32 %i, %kept
  %length = select i1 %same, i64 0, i64 24
  call void @llvm.memcpy.p0.p0.i64(ptr %k, ptr %e, i64 %length, i1 false)
  %kept2 = add i32 %kept, 1
  br label %next
next:
  %kept1 = phi i32 [ %kept, %copy ], [ %kept2, %keep ]
  %i1 = add i32 %i, 1
  br label %head
end:
  store i32 %kept, ptr %q
  ret void
}}
"""

#: The slot of a thread of the same warp.
_SLOTS = f"""
define internal ptr @sim_slot(ptr %ctx, i32 %lane) alwaysinline {{
  %p = getelementptr i8, ptr %ctx, i64 80
  %slots = load ptr, ptr %p
  %t = load i32, ptr %ctx
  %first = and i32 %t, -32
  %n = add i32 %first, %lane
  %b = mul i32 %n, {SLOT}
  %q = getelementptr i8, ptr %slots, i32 %b
  ret ptr %q
}}
define internal i32 @sim_lane(ptr %ctx) alwaysinline {{
  %t = load i32, ptr %ctx
  %lane = and i32 %t, 31
  ret i32 %lane
}}
"""


def _matrices(transposed: bool) -> str:
    """ldmatrix.x4: thread l names row l % 8 of matrix l / 8; of row l / 4 it gets element 2 * (l % 4) and the next."""
    loads = ""
    for matrix in range(4):
        parts = []
        for element in range(2):
            name = f"{matrix}_{element}"
            row, column = ("%pair", "%quarter") if transposed else ("%quarter", "%pair")
            moved = row if transposed else column
            loads += f"  %moved{name} = add i32 {moved}, {element}\n"
            row, column = (f"%moved{name}", column) if transposed else (row, f"%moved{name}")
            loads += f"""  %lane{name} = add i32 {row}, {8 * matrix}
  %slot{name} = call ptr @sim_slot(ptr %ctx, i32 %lane{name})
  %row{name} = load ptr, ptr %slot{name}
  %at{name} = getelementptr i16, ptr %row{name}, i32 {column}
  %half{name} = load i16, ptr %at{name}
  %wide{name} = zext i16 %half{name} to i32
"""
            parts.append(f"%wide{name}")
        loads += f"  %high{matrix} = shl i32 {parts[1]}, 16\n  %both{matrix} = or i32 {parts[0]}, %high{matrix}\n"
        before = "poison" if matrix == 0 else f"%r{matrix - 1}"
        loads += f"  %r{matrix} = insertvalue {{ i32, i32, i32, i32 }} {before}, i32 %both{matrix}, {matrix}\n"
    return f"""
define internal {{ i32, i32, i32, i32 }} @sim_{"transposed" if transposed else "matrices"}(ptr %ctx, ptr %p) noinline {{
  %lane = call i32 @sim_lane(ptr %ctx)
  %own = call ptr @sim_slot(ptr %ctx, i32 %lane)
  store ptr %p, ptr %own
  call void @sim_barrier(ptr %ctx)
  %quarter = udiv i32 %lane, 4
  %rest = urem i32 %lane, 4
  %pair = mul i32 %rest, 2
{loads}  call void @sim_barrier(ptr %ctx)
  ret {{ i32, i32, i32, i32 }} %r3
}}
"""


def _dot(name: str, to_float: str, depth: int) -> str:
    """Row x column of the left and right fragments in the slots of a warp, added to a number one after the other.

    A register holds the elements of one 32-bit word: neighbours along the sum.
    """
    half, each = depth // 2, depth // 8
    return f"""
define internal float @sim_element_{name}(ptr %ctx, i32 %lane, i32 %register, i32 %half) alwaysinline {{
  %slot = call ptr @sim_slot(ptr %ctx, i32 %lane)
  %p = getelementptr i32, ptr %slot, i32 %register
  %q = getelementptr i16, ptr %p, i32 %half
  %bits = load i16, ptr %q
{to_float}  ret float %x
}}
define internal float @sim_dot_{name}(ptr %ctx, i32 %row, i32 %column, float %start) noinline {{
entry:
  %row8 = urem i32 %row, 8
  %row_half = udiv i32 %row, 8
  %left_lane = mul i32 %row8, 4
  %right_lane = mul i32 %column, 4
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum = phi float [ %start, %entry ], [ %more, %loop ]
  %k8 = urem i32 %k, {half}
  %k_half = udiv i32 %k, {half}
  %pair = udiv i32 %k8, {each}
  %half = urem i32 %k8, {each}
  %l = add i32 %left_lane, %pair
  %twice = mul i32 %k_half, 2
  %lr = add i32 %row_half, %twice
  %a = call float @sim_element_{name}(ptr %ctx, i32 %l, i32 %lr, i32 %half)
  %r = add i32 %right_lane, %pair
  %rr = add i32 %k_half, 4
  %b = call float @sim_element_{name}(ptr %ctx, i32 %r, i32 %rr, i32 %half)
  %product = fmul float %a, %b
  %more = fadd float %sum, %product
  %next = add i32 %k, 1
  %go = icmp ult i32 %next, {depth}
  br i1 %go, label %loop, label %done
done:
  ret float %more
}}
"""


def _multiply(name: str, kind: str) -> str:
    """mma.sync of 16 x 8 with f32 accumulators."""
    registers = [f"{kind} %v{number}" for number in range(6)]
    sums = [f"float %c{number}" for number in range(4)]
    stores = "".join(
        f"  %p{number} = getelementptr i32, ptr %own, i32 {number}\n  store {kind} %v{number}, ptr %p{number}\n"
        for number in range(6)
    )
    dots = ""
    for number in range(4):
        row = "%upper" if number < 2 else "%lower"
        before = "poison" if number == 0 else f"%r{number - 1}"
        dots += f"""  %column{number} = add i32 %pair, {number % 2}
  %d{number} = call float @sim_dot_{name}(ptr %ctx, i32 {row}, i32 %column{number}, float %c{number})
  %r{number} = insertvalue {{ float, float, float, float }} {before}, float %d{number}, {number}
"""
    takes = ", ".join(["ptr %ctx", *registers, *sums])
    return f"""
define internal {{ float, float, float, float }} @sim_multiply_{name}({takes}) noinline {{
  %lane = call i32 @sim_lane(ptr %ctx)
  %own = call ptr @sim_slot(ptr %ctx, i32 %lane)
{stores}  call void @sim_barrier(ptr %ctx)
  %upper = udiv i32 %lane, 4
  %lower = add i32 %upper, 8
  %rest = urem i32 %lane, 4
  %pair = mul i32 %rest, 2
{dots}  call void @sim_barrier(ptr %ctx)
  ret {{ float, float, float, float }} %r3
}}
"""


_FROM_BF16 = """  %wide = zext i16 %bits to i32
  %shifted = shl i32 %wide, 16
  %x = bitcast i32 %shifted to float
"""
_FROM_F16 = """  %h = bitcast i16 %bits to half
  %x = fpext half %h to float
"""

#: What tensor cores see of a float32.
_FROM_TF32 = """  %word = load i32, ptr %p
  %cut = and i32 %word, -8192
  %x = bitcast i32 %cut to float
"""

HELPERS = "".join(
    [
        _ROUND,
        _COPY,
        _SLOTS,
        _matrices(False),
        _matrices(True),
        _dot("bf16", _FROM_BF16, 16),
        _dot("f16", _FROM_F16, 16),
        _dot("tf32", _FROM_TF32, 8),
        _multiply("bf16", "i32"),
        _multiply("f16", "<2 x half>"),
        _multiply("tf32", "i32"),
    ]
)
