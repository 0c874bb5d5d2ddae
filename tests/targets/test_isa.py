"""What a CPU of the table must have is what LLVM takes instructions from for it."""

from __future__ import annotations

import re

import pytest
from llvmlite import binding

from pipeline.targets.cpu.isa import AARCH64, CPUS, isa
from pipeline.targets.cpu.machine_code import Machine

#: Instructions that LLVM chooses for what kernels do, by the feature that has them.
OWNERS = {
    r"extrq|insertq": "sse4a",
    r"vgf2p8\w+": "gfni",
    r"vpsh[lr]d[wdq]": "avx512vbmi2",
    r"vpopcnt[bw]": "avx512bitalg",
    r"vpopcnt[dq]": "avx512vpopcntdq",
    r"vperm[it]?2?b": "avx512vbmi",
    r"vcvtne2?ps2bf16": "avx512bf16",
    r"vcvtps2phx|vcvtph2psx|vcvtsh2ss|vcvtss2sh|vmovsh": "avx512fp16",
    r"vcvtps2ph|vcvtph2ps": "f16c",
    r"vpdpbusd|vpdpwssd": "avx512vnni",
    r"vfn?m(add|sub)\w+": "fma",
    r"vpternlog[dq]": "avx512f",
}

#: Of AArch64. The last ones are those of no feature that a CPU of the table has, as far as code for it may know.
ARM_OWNERS = {
    r"bfcvtn?2?": "bf16",
    r"[su]dot": "dotprod",
    r"usdot|[us]+mmla": "i8mm",
    r"fmlal2?|fmlsl2?": "fp16fml",
    r"sqrdml[as]h": "rdm",
    r"frint(32|64)[xz]": "fptoint",
    r"f\w+ [vh]\d+(\.[48])?h, [vh]\d+(\.[48])?h": "fullfp16",
    r"fjcvtzs|fcmla|fcadd|(ld|st)(add|clr|eor|set|swp)\w*|ldapu?r|rmif|setf8|cfinv|axflag": "other",
    r"ptrue|while\w+|\w+ z\d.*|cnt[bhwd]|rdvl": "sve",
}

PROGRAM = """
declare <64 x i8> @llvm.ctpop.v64i8(<64 x i8>)
declare <16 x i32> @llvm.ctpop.v16i32(<16 x i32>)
declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)
define <16 x half> @round(<16 x float> %x) { %y = fptrunc <16 x float> %x to <16 x half> ret <16 x half> %y }
define <16 x float> @widen(<16 x half> %x) { %y = fpext <16 x half> %x to <16 x float> ret <16 x float> %y }
define half @one(ptr %x) { %y = load half, ptr %x ret half %y }
define void @rounded(float %x, ptr %at) { %y = fptrunc float %x to half store half %y, ptr %at ret void }
define <64 x i8> @bytes(<64 x i8> %x) { %y = ashr <64 x i8> %x, splat (i8 3) ret <64 x i8> %y }
define <64 x i8> @bits(<64 x i8> %x) { %y = call <64 x i8> @llvm.ctpop.v64i8(<64 x i8> %x) ret <64 x i8> %y }
define <16 x i32> @words(<16 x i32> %x) { %y = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %x) ret <16 x i32> %y }
define <64 x i8> @turn(<64 x i8> %x) {
  %y = shufflevector <64 x i8> %x, <64 x i8> poison, <64 x i32> <TURNED>
  ret <64 x i8> %y
}
define <16 x i8> @part(<16 x i8> %x) {
  %y = shufflevector <16 x i8> %x, <16 x i8> zeroinitializer, <16 x i32> <PART>
  ret <16 x i8> %y
}
define <32 x i16> @funnel(<32 x i16> %x, <32 x i16> %y) {
  %a = shl <32 x i16> %x, splat (i16 3)
  %b = lshr <32 x i16> %y, splat (i16 13)
  %c = or <32 x i16> %a, %b
  ret <32 x i16> %c
}
define <16 x i32> @dots(<16 x i32> %sum, <32 x i16> %x, <32 x i16> %y) {
  %a = sext <32 x i16> %x to <32 x i32>
  %b = sext <32 x i16> %y to <32 x i32>
  %p = mul <32 x i32> %a, %b
  %even = shufflevector <32 x i32> %p, <32 x i32> poison, <16 x i32> <EVEN>
  %odd = shufflevector <32 x i32> %p, <32 x i32> poison, <16 x i32> <ODD>
  %s = add <16 x i32> %even, %odd
  %t = add <16 x i32> %sum, %s
  ret <16 x i32> %t
}
define <8 x half> @halves(<8 x half> %x, <8 x half> %y) { %z = fadd <8 x half> %x, %y ret <8 x half> %z }
define half @half(half %x, half %y) { %z = fmul half %x, %y ret half %z }
define i64 @whole(double %x) { %y = fptosi double %x to i64 ret i64 %y }
define <16 x bfloat> @small(<16 x float> %x) { %y = fptrunc <16 x float> %x to <16 x bfloat> ret <16 x bfloat> %y }
"""
PLACES = {
    "TURNED": [(7 * place + 3) % 64 for place in range(64)],
    "PART": [2, 3, 4, *[16] * 5, *[-1] * 8],
    "EVEN": range(0, 32, 2),
    "ODD": range(1, 32, 2),
}


def program():
    text = PROGRAM
    for name, places in PLACES.items():
        text = text.replace(f"<{name}>", f"<{', '.join('i32 poison' if n < 0 else f'i32 {n}' for n in places)}>")
    return binding.parse_assembly(text)


def instructions(cpu):
    """What LLVM makes of the program for a CPU: instructions alone, and with their operands."""
    known = isa(cpu)
    machine = Machine(known.cpu, known.features, known.machine).create()
    module = program()
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    found = re.findall(r"^\s+([a-z][a-z0-9]+)\s(.*)", machine.emit_assembly(module), re.MULTILINE)
    return {name for name, _ in found} | {f"{name} {' '.join(operands.split())}" for name, operands in found}


def features(cpu):
    """The features that the program's code for a CPU takes, each with an instruction of it."""
    owners = ARM_OWNERS if cpu in AARCH64 else OWNERS
    whole = {what: rf"(?:{what})(?: .*|,.*)?" for what in owners}
    return {owners[what]: one for one in instructions(cpu) for what in owners if re.fullmatch(whole[what], one)}


@pytest.mark.parametrize("cpu", CPUS)
def test_a_cpu_must_have_what_code_for_it_takes(cpu):
    required = isa(cpu).required
    assert {feature: one for feature, one in features(cpu).items() if feature not in required} == {}


def test_code_for_one_cpu_is_not_for_another():
    """Conversions of f16 by AVX512-FP16 and shuffles by SSE4A, which machines with the rest of the features lack."""
    assert "avx512fp16" in isa("sapphirerapids").required
    assert "avx512fp16" not in isa("znver4").required
    assert "sse4a" in isa("znver4").required
    assert "sse4a" not in isa("icelake-server").required


def test_code_for_arm():
    """Arithmetic of f16 and bf16 where the CPU has it, and never vectors whose length is not known."""
    assert not {"fullfp16", "bf16"} & features("cortex-a72").keys()
    assert {"fullfp16"} <= features("neoverse-n1").keys()
    assert {"fullfp16", "bf16"} <= features("neoverse-v1").keys()
    assert isa("neoverse-v1").features == "-sve,-sve2"
