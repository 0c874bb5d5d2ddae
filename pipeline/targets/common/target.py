"""What a target is: how kernels become code for a processor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    from pipeline.mlir import ir
    from pipeline.program import Dump
    from pipeline.runtime.device.device_code import DeviceCode
    from pipeline.runtime.interface.code import Code


@dataclass(frozen=True)
class CodeForm:
    """What the code is made for.

    Attributes:
        assembly: dump the stage `asm`, too.
        linked: one object file that a linker can take.
        profile: time the kernels in every call.
        parallel: let threads share the work of kernels.
        rounds: round the operands of contractions to bf16.
        weight_bits: how many bits weights of products in f32 are rounded to: 4 or 8; 32 for weights as they are.
        weight_group: how many of a column share a scale then, 0 for all.
        weight_zero_points: columns or groups have zero points, too.
        quantizes_data: round what quantized weights are multiplied with to bytes, too.
        keep: patterns of the names of weights that are not rounded.
        winograd: the results of a tile along each dim by Winograd's algorithm; 0 for direct convolutions alone.
    """

    assembly: bool = False
    linked: bool = False
    profile: bool = False
    parallel: bool = True
    rounds: bool = False
    weight_bits: int = 32
    weight_group: int = 0
    weight_zero_points: bool = False
    quantizes_data: bool = False
    keep: tuple[str, ...] = ()
    winograd: int = 2


PLAIN = CodeForm()


class KernelStore(Protocol):
    """What is known of the code of kernels, by their keys; a disk cache."""

    def get(self, key: str) -> bytes | None:
        """What is kept under `key`; None if there is nothing."""

    def put_all(self, entries: Mapping[str, bytes]) -> None:
        """Keeps all of them, if that is possible."""


class Target(ABC):
    """A processor that code is generated for. A plugin's are found by their class; see docs/adding-a-target.md.

    Attributes:
        family: what users call it, or what stands in front of a colon and a variant.
        has_variants: whether a variant has to be named.
        example: a name to show to users.
        honours: the fields of `CodeForm` that change its code, of those that a target may refuse.
        fusion_rules: the table of what it may fuse: a target's name, or a path.
        quantized: the pipeline that chooses how products read quantized weights.
        contractions: the pipeline that chooses in which type operands of contractions are read.
        runs_here: whether this machine can run the code on its CPU.
        late: the stage whose text `late_text` makes of that of the stage `kernels`; None where all are dumped.
    """

    family: ClassVar[str]
    has_variants: ClassVar[bool] = False
    example: ClassVar[str]
    honours: ClassVar[frozenset[str]] = frozenset()
    fusion_rules: ClassVar[str]
    quantized: str = ""
    contractions: str = ""
    runs_here: bool = False
    late: ClassVar[str | None] = None

    @classmethod
    @abstractmethod
    def create(cls, variant: str, cpu: str, disable: frozenset[str], form: CodeForm) -> Target:
        """The target of a name; raises `OptionError` for a variant that isn't known.

        Args:
            variant: what stands behind the colon; empty if the family has none.
            cpu: the CPU to make code for, where it is one.
            disable: passes that are left out.
            form: what the code is made for.
        """

    @property
    def layouts(self) -> str:
        """The pipeline that changes in which order tensors lie in memory."""
        return ""

    def kernel_passes(self) -> str:
        """The pipeline that changes kernels, and which there are, when they have become functions."""
        return ""

    @abstractmethod
    def fingerprint(self) -> list[str]:
        """What the code depends on besides the module: equal for targets that make equal code of equal modules."""

    @abstractmethod
    def compile(self, module: ir.Module, dump: Dump) -> Code | DeviceCode:
        """Lowers a module of `@main`, `@prepare` and kernels to code; `dump` sees it at the stage `llvm`."""

    def compile_sharing(self, module: ir.Module, dump: Dump, store: KernelStore) -> Code | DeviceCode:
        """Likewise, where the code of kernels may come from a store, and goes there; there is no stage `late` then."""
        return self.compile(module, dump)

    def late_text(self, kernels: str) -> str:
        """The text of the stage `late`, for that of the stage `kernels`."""
        raise NotImplementedError(self.family)
