"""The CUDA target: kernels → PTX, and machine code where ptxas is at hand."""

from __future__ import annotations

from pipeline.errors import OptionError
from pipeline.ir.attributes import DISPATCH
from pipeline.mlir import ir, symbol_name, walk
from pipeline.program import Dump
from pipeline.runtime.interface.storage_types import as_is
from pipeline.targets.common.target import CodeForm
from pipeline.targets.cuda import nvvm, ptx
from pipeline.targets.cuda.toolkit import libdevice
from pipeline.targets.gpu.lower import Stages
from pipeline.targets.gpu.target import Generated, GpuTarget

#: The first architecture that has the instructions we use, and rounds float32 to bfloat16.
_TENSOR_CORES = 80

#: The multiprocessors of large GPUs: fewer blocks leave some idle.
_MULTIPROCESSORS = 132

#: The one that has warpgroups' instructions.
_WARPGROUPS = "90a"


class CudaTarget(GpuTarget):
    """NVIDIA GPUs from an architecture on, `sm_90`, with features behind it, `sm_90+tf32+cublas`.

    `sm_90a` is Hopper alone, with instructions that later ones do not have.

    `tf32`: tensor cores multiply float32, too. `cublas`: products for which that pays by an estimate are left to the
    library; `cublas-always`: all that it can compute. The executable holds PTX, which drivers translate for any later
    GPU, and, where ptxas is found, machine code.
    """

    family = fusion_rules = "cuda"
    has_variants = True
    example = "cuda:sm_90"
    contractions = (
        "contract-in-bf16{f16=true least-columns=1 least-sum=1}"  # weights stay of 16 bits, as tensor cores take them
    )

    def __init__(self, architecture: str, disable: frozenset[str] = frozenset()):
        super().__init__(disable)
        named, *features = architecture.split("+")
        self.architecture = ptx.architecture(named)
        self.name = f"cuda:{named}"
        self.features = sorted(set(features))
        generation = ptx.generation(self.architecture)
        _check_features(self.features, generation)
        cores = str(generation >= _TENSOR_CORES).lower()
        warpgroups = str(self.architecture == _WARPGROUPS).lower()
        tf32 = str("tf32" in features).lower()
        self.stages = Stages(
            blocks=(
                f"func.func(mark-flash-attention{{scratch=40960 tensor-cores={cores}}}, "
                f"tile-groups-to-blocks{{scratch=40960 blocks={_MULTIPROCESSORS}}})"
            ),
            mapping=(
                f"map-to-threads{{shuffles=true access-bytes=16 most-threads=1024 tensor-cores={cores} "
                f"warpgroup-mma={warpgroups} tf32={tf32}}}"
            ),
            libraries=_libraries(self.features, tf32),
        )

    @classmethod
    def create(cls, variant: str, cpu: str, disable: frozenset[str], form: CodeForm) -> CudaTarget:
        """See `Target.create`."""
        return cls(variant, disable)

    @property
    def layouts(self) -> str:
        """Channels last for convolutions."""
        return "canonicalize, cse, propagate-layouts{for-convolutions=true}"

    def fingerprint(self) -> list[str]:
        """See `Target.fingerprint`."""
        return [self.name, *self.features, str(libdevice()), str(ptx.can_assemble(self.architecture))]

    def stored(self, element: str) -> str:
        """See `GpuTarget.stored`."""
        return as_is(element)

    def generate(self, device: ir.Module, dump: Dump) -> Generated:
        """See `GpuTarget.generate`."""
        rounds = ptx.generation(self.architecture) >= _TENSOR_CORES
        nvvm.legalize(device, libdevice() is not None, rounds, self.disable)
        dump("gpu", device)
        llvm = nvvm.to_llvm(device)
        dump("llvm", llvm)
        text = ptx.to_ptx(llvm, self.architecture)
        dump("ptx", text)
        pieces = [text.encode()]
        if ptx.can_assemble(self.architecture):
            pieces.append(ptx.assemble(text, self.architecture)[0])
        names = [symbol_name(op) for op in walk(device, "func.func") if DISPATCH in op.attributes]
        return Generated(tuple(pieces), dict.fromkeys(names, 0))


_FEATURES = ("tf32", "cublas", "cublas-always")


def _check_features(features: list[str], architecture: int) -> None:
    for feature in features:
        if feature not in _FEATURES:
            raise OptionError(f"target cuda: unknown feature {feature!r}; there is {', '.join(_FEATURES)}")
    if "tf32" in features and architecture < _TENSOR_CORES:
        raise OptionError(f"target cuda: tf32 is there from sm_{_TENSOR_CORES} on, not on sm_{architecture}")


def _libraries(features: list[str], tf32: str) -> str:
    if not any(feature.startswith("cublas") for feature in features):
        return ""
    return f"mark-library-gemm{{tf32={tf32} all={str('cublas-always' in features).lower()}}}"
