"""The CPU target: what there is to know about it before there is a module. MLIR is loaded to compile alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.program import Dump
from pipeline.runtime.interface.code import Code
from pipeline.runtime.native.cpu_features import why_foreign
from pipeline.targets.common.target import PLAIN, CodeForm, KernelStore, Target
from pipeline.targets.cpu.isa import LEAST_MASKED, isa

if TYPE_CHECKING:
    from pipeline.mlir import ir


class CpuTarget(Target):
    """CPUs of x86-64 and AArch64, by name, or `native` for this machine's."""

    family = example = fusion_rules = "cpu"
    honours = frozenset({"profile", "rounds", "keep", "quantizes_data", "weight_bits", "winograd"})
    late = "llvm"

    def __init__(self, cpu: str = "native", disable: frozenset[str] = frozenset(), form: CodeForm = PLAIN):
        self.isa = isa(cpu)
        self.disable = disable
        self.form = form
        self.runs_here = why_foreign(self.isa.machine, self.isa.cpu, self.isa.required) is None
        rounds, supported = _word(form.rounds), _word(self.isa.bf16_dots)
        self.quantized = f"""
            func.func(narrow-unpacked-weights), cse,
            widen-quantized-products{{weights={_word(form.weight_bits != PLAIN.weight_bits)}}},
            order-weight-groups,
            {_quantization(form)}
            contract-in-int8{{dots={self.isa.int8_dots}}},
            fuse-dequantization,
            canonicalize,
            pack-nibbles,
            canonicalize,
            cse
        """
        self.contractions = f"contract-in-bf16{{round={rounds} supported={supported}{_kept(form)}}}"

    @classmethod
    def create(cls, variant: str, cpu: str, disable: frozenset[str], form: CodeForm) -> CpuTarget:
        """See `Target.create`."""
        return cls(cpu, disable, form)

    @property
    def layouts(self) -> str:
        """Channels last where that pays; then weights for Winograd's algorithm, unless that is not wanted."""
        results = self.form.winograd
        return (
            "canonicalize, cse, drop-padded-taps, propagate-layouts, compute-channels-last, transposed-conv-phases"
            + (f", winograd-weights{{results={results}}}" if results else "")
        )

    def kernel_passes(self) -> str:
        """Kernels pad what they read, products read panels, small loops become kernels."""
        masks = self.isa.vector_bytes >= LEAST_MASKED
        pads = f"fold-pads-into-kernels{{masked-bits={self.isa.masked_bits}}}, " if masks else ""
        columns, bf16, int8 = 2 * self.isa.vector_bytes // 4, _word(self.isa.bf16_dots), self.isa.int8_dots
        words, matrices = _word(self.isa.tables), _word(self.isa.dot_matrices)
        dots = f"bf16-dots={bf16} int8-dots={int8} dot-matrices={matrices}"
        panels = f"{{columns={columns} {dots} nibble-words={words}}}"
        return f"{pads}pack-weights{panels}, pack-operands{panels}, read-transposed-rows, outline-loops"

    def fingerprint(self) -> list[str]:
        """See `Target.fingerprint`."""
        return [repr(self.isa), repr(self.form)]

    def compile(self, module: ir.Module, dump: Dump) -> Code:
        """See `Target.compile`."""
        from pipeline.targets.cpu.build import build

        return build(module, dump, self.isa, self.form, self.disable)

    def compile_sharing(self, module: ir.Module, dump: Dump, store: KernelStore) -> Code:
        """See `Target.compile_sharing`."""
        from pipeline.targets.cpu.build import build

        return build(module, dump, self.isa, self.form, self.disable, store)

    def late_text(self, kernels: str) -> str:
        """See `Target.late_text`."""
        from pipeline.targets.cpu.build import llvm_dialect

        return llvm_dialect(kernels, self.isa, self.form, self.disable)


def _quantization(form: CodeForm) -> str:
    """The pass that rounds weights, if they are to be rounded."""
    if form.weight_bits == PLAIN.weight_bits:
        return ""
    data, zeros = _word(form.quantizes_data), _word(form.weight_zero_points)
    steps = f"bits={form.weight_bits} group={form.weight_group} zero-points={zeros}"
    return f"quantize-weights{{{steps} data={data}{_kept(form)}}},"


def _kept(form: CodeForm) -> str:
    """The option of these passes that names weights."""
    return f" keep={{{','.join(form.keep)}}}" if form.keep else ""


def _word(flag: bool) -> str:
    return str(flag).lower()
