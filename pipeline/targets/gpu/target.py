"""What GPU targets share: from kernels on tensors to plans and functions of a thread."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field

from pipeline.errors import CompileError
from pipeline.ir.attributes import BLOCK, CALLS, DISPATCH, ITEMS, SHARED, THREADS
from pipeline.mlir import function, ir, symbol_name, walk
from pipeline.passes.bufferization.results_to_out_params import places_of_results
from pipeline.passmanager.pass_pipeline import PassPipeline
from pipeline.program import Dump
from pipeline.runtime.device.device_code import DeviceCode, DeviceKernel
from pipeline.runtime.interface.storage_types import Stored
from pipeline.targets.common.module_summary import check_messages, entry_names, kernels_of, result_types, sources_of
from pipeline.targets.common.target import CodeForm, Target
from pipeline.targets.gpu.constants import Constants
from pipeline.targets.gpu.host_plan import build_plan
from pipeline.targets.gpu.lower import Stages, lower
from pipeline.targets.gpu.scalars import passed_type

_DYNAMIC = ir.ShapedType.get_dynamic_size()
_DYNAMIC_STRIDE = ir.ShapedType.get_dynamic_stride_or_offset()


@dataclass(frozen=True)
class Generated:
    """What a target makes of the functions of a thread.

    Attributes:
        pieces: pieces of code.
        piece_of: the number of the piece that each dispatch is in.
        required: what the device must have.
    """

    pieces: tuple[bytes, ...]
    piece_of: dict[str, int]
    required: tuple[str, ...] = field(default=())


class GpuTarget(Target):
    """A GPU; `name` is what the runtime finds the device by, `stages` the passes that give threads their work."""

    name: str
    stages = Stages()

    def __init__(self, disable: frozenset[str] = frozenset()):
        self.disable = disable

    @classmethod
    def create(cls, variant: str, cpu: str, disable: frozenset[str], form: CodeForm) -> GpuTarget:
        """See `Target.create`."""
        return cls(disable)

    def fingerprint(self) -> list[str]:
        """See `Target.fingerprint`."""
        return [self.name]

    @abstractmethod
    def generate(self, device: ir.Module, dump: Dump) -> Generated:
        """Compiles the functions of a thread."""

    @abstractmethod
    def stored(self, element: str) -> str:
        """The dtype in memory of an MLIR element type."""

    def compile(self, module: ir.Module, dump: Dump) -> DeviceCode:
        """See `Target.compile`."""
        _refuse_externals(module)
        kernels, checks = kernels_of(module), check_messages(module)
        names = entry_names(module)
        sources = {name: sources_of(function(module, name)) for name in names}
        prepared = result_types(function(module, "prepare")) if "prepare" in names else ()
        PassPipeline.parse("results-to-out-params").run(module)
        moved = tuple(place == "parameter" for place in places_of_results(function(module, "main")))
        lowered = lower(module, self.stages, self.disable)
        declared = _dispatches(lowered.host)
        generated = self.generate(lowered.device, dump)
        blocks = {symbol_name(op): op for op in walk(lowered.device, "func.func")}
        launches = [
            _device_kernel(name, declared[name], blocks[name], generated, self.stored) for name in generated.piece_of
        ]
        numbers = {launch.name: number for number, launch in enumerate(launches)}
        constants = Constants(lowered.host)
        plans = {name: build_plan(lowered.host, name, numbers, self.stored, constants) for name in names}
        return DeviceCode(
            target=self.name,
            code=generated.pieces,
            launches=tuple(launches),
            constants=tuple(constants.stored(self.stored)),
            main=plans["main"],
            main_sources=sources["main"],
            moved=moved,
            prepare=plans.get("prepare"),
            prepare_sources=sources.get("prepare", ()),
            prepared=prepared,
            checks=checks,
            required=generated.required,
            kernels=kernels,
        )


def _refuse_externals(module: ir.Module) -> None:
    for op in walk(module, "func.func"):
        if CALLS in op.attributes:
            name = str(op.attributes[CALLS][0])
            raise CompileError(f"fuse_into(becomes={name}): functions from outside are called on the target cpu only")


def _dispatches(host: ir.Module) -> dict[str, ir.Operation]:
    return {symbol_name(op): op for op in walk(host, "func.func") if DISPATCH in op.attributes}


def _device_kernel(
    name: str, declared: ir.Operation, function: ir.Operation, generated: Generated, stored: Stored
) -> DeviceKernel:
    kinds = list(ir.FunctionType(ir.TypeAttr(declared.attributes["function_type"]).value).inputs)
    if "arg_attrs" in declared.attributes and THREADS in ir.ArrayAttr(declared.attributes["arg_attrs"])[0]:
        kinds = kinds[1:]
    return DeviceKernel(
        name=name,
        code=generated.piece_of[name],
        block=_number(function, BLOCK, 1),
        items=_number(function, ITEMS, 1),
        threads=_number(function, THREADS, -1),
        arguments=tuple(_argument(kind, stored) for kind in kinds),
        shared=_number(function, SHARED, 0),
    )


def _number(op: ir.Operation, name: str, default: int) -> int:
    return ir.IntegerAttr(op.attributes[name]).value if name in op.attributes else default


def _argument(kind: ir.Type, stored: Stored) -> tuple:
    """How an argument is passed: see `DeviceKernel.arguments`."""
    if not isinstance(kind, ir.MemRefType):
        return ("number", str(passed_type(kind)))
    sizes = [dim for dim in range(kind.rank) if kind.is_dynamic_dim(dim)]
    offset, strides = False, []
    if isinstance(kind.layout, ir.StridedLayoutAttr):
        steps, first = kind.get_strides_and_offset()
        offset = first == _DYNAMIC_STRIDE
        strides = [dim for dim, step in enumerate(steps) if step == _DYNAMIC_STRIDE]
    return ("buffer", stored(str(kind.element_type)), sizes, offset, strides)
