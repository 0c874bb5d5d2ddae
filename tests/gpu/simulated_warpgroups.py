"""What wgmma does, as LLVM IR for the CPU: from the PTX ISA's canonical layouts, not from our own code for them.

A product is computed when it is started; `simulated_wgmma_groups` checks that it was right to, and what fails makes all
results NaN. Tiles are in the shared memory that a launch asks for, and swizzled by 128 bytes.
"""

from __future__ import annotations

import re

import simulated_wgmma_groups as groups

#: All that a launch may ask for.
_SHARED_BYTES = 227 * 1024

_CALL = re.compile(r'call (\{[^}]*\}|void) asm sideeffect "([^"]*)", "[^"]*"\(')
_PRODUCT = re.compile(
    r"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k16\.f32\.(bf16|f16)\.\2 \{([^}]*)\}, (\{[^}]*\}|\$\d+), \$\d+, "
    r"p, 1, 1, ([01])(?:, ([01]))?;"
)
_EFFECTS = {
    "wgmma.fence.sync.aligned;": "fence",
    "wgmma.commit_group.sync.aligned;": "commit",
    "fence.proxy.async.shared::cta;": "publish",
}


def for_cpu(llvm: str) -> str:
    """Inline assembly becomes calls of helpers, which are added where there are any."""
    helpers: dict[str, str] = {}

    def called(match: re.Match[str]) -> str:
        kind, text = match[1], match[2]
        count = kind.count("float")
        product = _PRODUCT.search(text)
        if product is not None:
            assert count == int(product[1]) // 2 == product[3].count("$")
            in_registers = product[4].startswith("{")
            flags = (0, int(product[5])) if in_registers else (int(product[5]), int(product[6]))
            name = f"sim_wgmma_{product[1]}_{product[2]}_{flags[0]}{flags[1]}{'r' * in_registers}"
            helpers[name] = _product(name, int(product[1]), product[2], flags, in_registers)
            return f"call {kind} @{name}(ptr %ctx, "
        if text in _EFFECTS:
            return f"call void @sim_wg_{_EFFECTS[text]}(ptr %ctx"
        wait = re.fullmatch(r"wgmma\.wait_group\.sync\.aligned (\d+);", text)
        assert wait is not None, text
        if kind == "void":
            return f"call void @sim_wg_wait(ptr %ctx, i32 {wait[1]}"
        helpers[f"sim_wg_finish_{count}"] = _finish(count)
        return f"call {kind} @sim_wg_finish_{count}(ptr %ctx, "

    llvm = _CALL.sub(called, llvm)
    llvm = re.sub(r"^@__dynamic_shmem__\d+ = .*$", "", llvm, flags=re.M)
    return re.sub(r"@__dynamic_shmem__\d+", "@sim_dynamic", llvm) + "".join(helpers.values())


def _struct(count: int) -> tuple[str, str]:
    """The type, and the parameters of that many accumulators."""
    return f"{{ {', '.join(['float'] * count)} }}", ", ".join(f"float %c{number}" for number in range(count))


def _product(name: str, columns: int, element: str, flags: tuple[int, int], in_registers: bool) -> str:
    count = columns // 2
    kind, sums = _struct(count)
    takes = ", ".join(f"i32 %a{number}" for number in range(4)) if in_registers else "i64 %a"
    text = f"define internal {kind} @{name}(ptr %ctx, {sums}, {takes}, i64 %b) noinline {{\n"
    text += "  %lane = call i32 @sim_lane(ptr %ctx)\n"
    if in_registers:
        text += "  %own = call ptr @sim_slot(ptr %ctx, i32 %lane)\n"
        for number in range(4):
            text += (
                f"  %s{number} = getelementptr i32, ptr %own, i32 {number}\n  store i32 %a{number}, ptr %s{number}\n"
            )
        text += "  call void @sim_barrier(ptr %ctx)\n"
    left = "i64 0" if in_registers else "i64 %a"
    major = 2 if in_registers else flags[0]
    text += f"  call void @sim_wg_start(ptr %ctx, {left}, i64 %b, i32 {major}, i32 {flags[1]}, i32 {columns})\n"
    text += """  %t = load i32, ptr %ctx
  %w = udiv i32 %t, 32
  %warp = urem i32 %w, 4
  %top = mul i32 %warp, 16
  %down = udiv i32 %lane, 4
  %upper = add i32 %top, %down
  %lower = add i32 %upper, 8
  %rest = urem i32 %lane, 4
  %pair = mul i32 %rest, 2
"""
    for number in range(count):
        row = "%lower" if number % 4 >= 2 else "%upper"
        before = "poison" if number == 0 else f"%r{number - 1}"
        text += f"""  %n{number} = add i32 %pair, {8 * (number // 4) + number % 2}
  %d{number} = call float @sim_wg_dot_{element}(ptr %ctx, {left}, i64 %b, i32 {row}, i32 %n{number}, i32 {major}, """
        text += f"""i32 {flags[1]}, float %c{number})
  %r{number} = insertvalue {kind} {before}, float %d{number}, {number}
"""
    text += "  call void @sim_barrier(ptr %ctx)\n" if in_registers else ""
    return text + f"  ret {kind} %r{count - 1}\n}}\n"


def _finish(count: int) -> str:
    """The accumulators, or NaN where something was wrong."""
    kind, sums = _struct(count)
    text = f"define internal {kind} @sim_wg_finish_{count}(ptr %ctx, {sums}) noinline {{\n"
    text += """  call void @sim_wg_wait(ptr %ctx, i32 0)
  %q = call ptr @sim_wg_record(ptr %ctx)
  %p = getelementptr i32, ptr %q, i32 4
  %v = load i32, ptr %p
  %bad = icmp ne i32 %v, 0
  %x = select i1 %bad, float 0x7FF8000000000000, float 0.0
"""
    for number in range(count):
        before = "poison" if number == 0 else f"%r{number - 1}"
        text += f"""  %d{number} = fadd float %c{number}, %x
  %r{number} = insertvalue {kind} {before}, float %d{number}, {number}
"""
    return text + f"  ret {kind} %r{count - 1}\n}}\n"


#: Where an element is, by the canonical layouts with a swizzle of 128 bytes, in bytes. "K-major", T = 8 elements of 16
#: bytes: ((8, m), (T, 2)) : ((128, SBO), (2, 16)), "MN-major": ((T, 8, m), (8, k)) : ((2, 16, LBO), (128, SBO)). Bits 4
#: to 6 of the address are then XORed with bits 7 to 9. A descriptor has 14 bits of an address's 18.
_ELEMENTS = f"""
@sim_dynamic = internal global [{_SHARED_BYTES} x i8] zeroinitializer, align 1024
define internal i64 @sim_wg_field(i64 %d, i64 %shift) alwaysinline {{
  %s = lshr i64 %d, %shift
  %m = and i64 %s, 16383
  %b = shl i64 %m, 4
  ret i64 %b
}}
define internal i16 @sim_wg_bits(i64 %d, i32 %mn32, i32 %k32, i32 %major) noinline {{
  %swizzle = lshr i64 %d, 62
  %based = lshr i64 %d, 49
  %base_bits = and i64 %based, 7
  %is128 = icmp eq i64 %swizzle, 1
  %isbase = icmp eq i64 %base_bits, 0
  %fine = and i1 %is128, %isbase
  br i1 %fine, label %good, label %bad
bad:
  call void @llvm.trap()
  unreachable
good:
  %mn = zext i32 %mn32 to i64
  %k = zext i32 %k32 to i64
  %start = call i64 @sim_wg_field(i64 %d, i64 0)
  %lbo = call i64 @sim_wg_field(i64 %d, i64 16)
  %sbo = call i64 @sim_wg_field(i64 %d, i64 32)
  %mn8 = urem i64 %mn, 8
  %mnr = udiv i64 %mn, 8
  %k0 = mul i64 %mn8, 128
  %k1 = mul i64 %mnr, %sbo
  %k2 = mul i64 %k, 2
  %k01 = add i64 %k0, %k1
  %kmajor = add i64 %k01, %k2
  %mn64 = urem i64 %mn, 64
  %mnb = udiv i64 %mn, 64
  %kq = urem i64 %k, 8
  %kr = udiv i64 %k, 8
  %m0 = mul i64 %mn64, 2
  %m1 = mul i64 %mnb, %lbo
  %m2 = mul i64 %kq, 128
  %m3 = mul i64 %kr, %sbo
  %m01 = add i64 %m0, %m1
  %m23 = add i64 %m2, %m3
  %mnmajor = add i64 %m01, %m23
  %is = icmp eq i32 %major, 1
  %offset = select i1 %is, i64 %mnmajor, i64 %kmajor
  %g = ptrtoint ptr @sim_dynamic to i64
  %g_low = and i64 %g, 262143
  %from = sub i64 %start, %g_low
  %wrapped = and i64 %from, 262143
  %begin = add i64 %g, %wrapped
  %linear = add i64 %begin, %offset
  %row = lshr i64 %linear, 3
  %bits = and i64 %row, 112
  %address = xor i64 %linear, %bits
  %p = inttoptr i64 %address to ptr
  %x = load i16, ptr %p
  ret i16 %x
}}
define internal i16 @sim_wg_register(ptr %ctx, i32 %row, i32 %k) noinline {{
  %m = urem i32 %row, 16
  %m8 = urem i32 %m, 8
  %mh = udiv i32 %m, 8
  %k8 = urem i32 %k, 8
  %kh = udiv i32 %k, 8
  %l0 = mul i32 %m8, 4
  %l1 = udiv i32 %k8, 2
  %lane = add i32 %l0, %l1
  %slot = call ptr @sim_slot(ptr %ctx, i32 %lane)
  %kh2 = mul i32 %kh, 2
  %r = add i32 %mh, %kh2
  %p = getelementptr i32, ptr %slot, i32 %r
  %half = urem i32 %k, 2
  %q = getelementptr i16, ptr %p, i32 %half
  %x = load i16, ptr %q
  ret i16 %x
}}
"""


def _dot(name: str, to_float: str) -> str:
    takes = "ptr %ctx, i64 %a, i64 %b, i32 %row, i32 %column, i32 %am, i32 %bm, float %c"
    return f"""
define internal float @sim_wg_float_{name}(i16 %bits) alwaysinline {{
{to_float}  ret float %x
}}
define internal float @sim_wg_dot_{name}({takes}) noinline {{
entry:
  %regs = icmp eq i32 %am, 2
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %next, %more ]
  %sum = phi float [ %c, %entry ], [ %total, %more ]
  br i1 %regs, label %register, label %memory
register:
  %ar = call i16 @sim_wg_register(ptr %ctx, i32 %row, i32 %k)
  br label %more
memory:
  %as = call i16 @sim_wg_bits(i64 %a, i32 %row, i32 %k, i32 %am)
  br label %more
more:
  %ab = phi i16 [ %ar, %register ], [ %as, %memory ]
  %bb = call i16 @sim_wg_bits(i64 %b, i32 %column, i32 %k, i32 %bm)
  %x = call float @sim_wg_float_{name}(i16 %ab)
  %y = call float @sim_wg_float_{name}(i16 %bb)
  %product = fmul float %x, %y
  %total = fadd float %sum, %product
  %next = add i32 %k, 1
  %go = icmp ult i32 %next, 16
  br i1 %go, label %loop, label %done
done:
  ret float %total
}}
"""


_FROM_BF16 = """  %wide = zext i16 %bits to i32
  %shifted = shl i32 %wide, 16
  %x = bitcast i32 %shifted to float
"""
_FROM_F16 = """  %h = bitcast i16 %bits to half
  %x = fpext half %h to float
"""

HELPERS = "".join([_ELEMENTS, _dot("bf16", _FROM_BF16), _dot("f16", _FROM_F16), groups.HELPERS])
