"""What the compiler hands to the runtime: machine code and how to call it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from pipeline.runtime.interface.entry_point import EntryPoint
from pipeline.runtime.interface.signature import ParameterSource, TensorType


class Origin(NamedTuple):
    """Where an op comes from; what is unknown is None.

    Attributes:
        op: the PyTorch op that it is a part of, e.g. `softmax`.
        source: the PyTorch source line, `file.py:12`.
        module: the path of the module of the model, e.g. `encoder.layer.3.attention`.
    """

    op: str | None
    source: str | None
    module: str | None = None

    @property
    def place(self) -> str:
        """Source line and module for people."""
        return place_of(self.source, self.module) or "unknown line"


def place_of(source: str | None, module: str | None) -> str:
    """`file.py:12 in encoder.layer.3`, or what of that is known."""
    return " in ".join(filter(None, (source, module)))


@dataclass(frozen=True)
class CallSite:
    """A place where the program calls a kernel.

    Attributes:
        ops: where the ops that the kernel computes there come from.
    """

    ops: tuple[Origin, ...]


@dataclass(frozen=True, repr=False)
class Kernel:
    """A kernel of an executable.

    Attributes:
        name: its name, which is the symbol that profilers show.
        kind: what it is, e.g. `elementwise`, `matmul`.
        ops: the linalg ops that it computes, in order.
        calls: in how many places the program calls it.
        words: what these compute, as in kernels' names: `("conv2d", "add", "relu")`.
        places: the places, not known of an executable that was loaded from a file.
        operations: how many arithmetic operations a call takes; None if that depends on the call.
        bytes: how many bytes it reads and writes at least, everything once; None if that depends on the call.
        entry: `main`, or `prepare` of one that only computes what depends on weights alone: it runs once.
    """

    name: str
    kind: str
    ops: tuple[str, ...]
    calls: int
    words: tuple[str, ...] = ()
    places: tuple[CallSite, ...] = ()
    operations: int | None = None
    bytes: int | None = None
    entry: str = "main"

    def __str__(self) -> str:
        calls = f"{self.calls} calls" if self.calls > 1 else "1 call"
        work = f", {readable(self.operations)}FLOP" if self.operations else ""
        moved = f", {readable(self.bytes)}B" if self.bytes else ""
        return f"@{self.entry} {self.name}: {self.kind}, {calls}{work}{moved}"

    def __repr__(self) -> str:
        return f"<Kernel {self}>"


def readable(number: float) -> str:
    """A number with three digits and a prefix for its unit: `1.24 G`."""
    for prefix in ("", "k", "M", "G"):
        if number < 999.5:
            return f"{number:.3g} {prefix}"
        number /= 1000
    return f"{number:.3g} T"


@dataclass(frozen=True)
class Site:
    """A place in the code that is timed: what runs there, a kernel or `copy`; source line and module, or empty."""

    name: str
    source: str
    module: str = ""


@dataclass(frozen=True)
class ExternalFunction:
    """A function from outside that the code calls in place of a kernel.

    Attributes:
        symbol: what the object file calls it.
        function: its name in its library; that of a Python function for the compiler.
        library: the path of the shared library; empty for a Python function.
        parameters: what it takes in order: for a tensor its element type, as MLIR spells it, and its rank; for a number
            its type and None.
        outputs: how many of the last tensors it writes.
        numbers: what it takes after those, each as int64_t.
    """

    symbol: str
    function: str
    library: str
    parameters: tuple[tuple[str, int | None], ...]
    outputs: int
    numbers: tuple[int, ...] = ()

    @staticmethod
    def from_json(data: dict[str, Any]) -> ExternalFunction:
        """The inverse of `dataclasses.asdict`."""
        parameters = tuple((dtype, rank) for dtype, rank in data["parameters"])
        return ExternalFunction(**{**data, "parameters": parameters, "numbers": tuple(data["numbers"])})


@dataclass(frozen=True)
class PreparedRecipe:
    """What a tensor of @prepare is, for executables of the same weights to have it once.

    Attributes:
        digest: of all that computes it; empty where that cannot be told.
        weights: the names of the weights behind it.
    """

    digest: str
    weights: tuple[str, ...]


@dataclass(frozen=True)
class Code:
    """Everything of an executable but its signature and weights.

    Attributes:
        objects: machine code: a shared object, or object files that call each other.
        main, main_sources: the entry for each call, and where each of its own arguments comes from.
        prepare, prepare_sources, prepared: likewise for what is computed from weights alone, and its results' types.
        unread: the numbers of those results that main takes and yet doesn't read.
        recipes: what those results are, by their numbers.
        workspace: how many bytes main's temporaries take, and the scratch of its kernels with one thread.
        thread_bytes: how many bytes of scratch each other thread that shares the work of a kernel takes.
        checks: the messages of the checks that the code makes as it runs, by number from 1.
        machine: the kind of machine that it is for, as Python's `platform.machine` has it.
        cpu, required: the CPU that it is for, and the features that one must have to run it.
        kernels: in the order of first use.
        sites: what is timed, by number, in code that times its kernels; the first is main as a whole.
        externals: the functions from outside that it calls.
    """

    objects: tuple[bytes, ...]
    main: EntryPoint
    main_sources: tuple[ParameterSource, ...]
    prepare: EntryPoint | None
    prepare_sources: tuple[ParameterSource, ...]
    prepared: tuple[TensorType, ...]
    workspace: int
    checks: tuple[str, ...]
    machine: str
    cpu: str
    required: tuple[str, ...]
    kernels: tuple[Kernel, ...] = ()
    sites: tuple[Site, ...] = ()
    externals: tuple[ExternalFunction, ...] = ()
    thread_bytes: int = 0
    unread: tuple[int, ...] = ()
    recipes: tuple[PreparedRecipe, ...] = ()

    @property
    def kept(self) -> dict[int, TensorType]:
        """The types of those results of @prepare that main reads, by their numbers."""
        return {number: kind for number, kind in enumerate(self.prepared) if number not in self.unread}

    def prepared_weights(self, names: Iterable[str]) -> list[str]:
        """Those of the model's weights that only @prepare reads."""
        read = {source.name for source in self.main_sources if source.kind == "weight"}
        return [name for name in names if name not in read]

    def to_json(self) -> dict[str, Any]:
        """Everything but the object files and the kernels' places, as JSON values."""
        kernels = tuple(replace(kernel, places=()) for kernel in self.kernels)
        return asdict(replace(self, objects=(), kernels=kernels)) | {"objects": len(self.objects)}

    @staticmethod
    def from_json(data: dict[str, Any], objects: tuple[bytes, ...]) -> Code:
        """The inverse of `to_json`."""
        return Code(
            objects=objects,
            main=EntryPoint.from_json(data["main"]),
            main_sources=tuple(ParameterSource(**source) for source in data["main_sources"]),
            prepare=None if data["prepare"] is None else EntryPoint.from_json(data["prepare"]),
            prepare_sources=tuple(ParameterSource(**source) for source in data["prepare_sources"]),
            prepared=tuple(TensorType(kind["dtype"], tuple(kind["shape"])) for kind in data["prepared"]),
            workspace=data["workspace"],
            checks=tuple(data["checks"]),
            machine=data["machine"],
            cpu=data["cpu"],
            required=tuple(data["required"]),
            kernels=tuple(map(kernel_from_json, data["kernels"])),
            sites=tuple(Site(**site) for site in data["sites"]),
            externals=tuple(map(ExternalFunction.from_json, data["externals"])),
            thread_bytes=data["thread_bytes"],
            unread=tuple(data.get("unread", ())),  # artifacts made before these were known lack them
            recipes=tuple(PreparedRecipe(of["digest"], tuple(of["weights"])) for of in data.get("recipes", ())),
        )


def kernel_from_json(data: dict[str, Any]) -> Kernel:
    """A kernel from JSON values, without its places."""
    return Kernel(**{**data, "ops": tuple(data["ops"]), "words": tuple(data["words"]), "places": ()})
