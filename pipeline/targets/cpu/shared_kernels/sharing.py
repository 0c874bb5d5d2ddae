"""The kernels of one compilation: whose code is known, and what becomes known of the others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pipeline.ir.attributes import KERNEL, READ, SCRATCH, SHARED, TAKEN
from pipeline.ir.kernels import kernel_kind
from pipeline.mlir import calls_of, func, function, function_around, ir, symbol_name, walk
from pipeline.passes.cpu.parallelize_kernels import CHUNK_OF
from pipeline.remarks import Remark, repeat
from pipeline.targets.common.target import KernelStore
from pipeline.targets.cpu.buffer_reads import read_parameters
from pipeline.targets.cpu.shared_kernels.kernel_code import KernelCode, PortableRemark, portable
from pipeline.targets.cpu.shared_kernels.kernel_text import ShareableKernel, shareable_kernels


class KernelSharing:
    """Takes the code of kernels from a store, and brings it that of the others.

    Attributes:
        code_names: what the code of kernels is called, by the names that they have in the module.
        known: the code that the store has, by what it is called.
        new: the kernels that are compiled now, likewise.
    """

    def __init__(self, store: KernelStore | None, how: str):
        self._store, self._how = store, how
        self.code_names: dict[str, str] = {}
        self.known: dict[str, KernelCode] = {}
        self.new: dict[str, ShareableKernel] = {}
        self._read: dict[str, tuple[int, ...]] = {}
        self._repeated: list[ShareableKernel] = []
        self._taken: list[ShareableKernel] = []
        self._places: dict[str, int] = {}
        self._compiled: set[str] = set()

    def take(self, module: ir.Module) -> None:
        """Makes declarations of the kernels of a module on buffers whose code is known; marks the others."""
        functions = {symbol_name(function): function for function in walk(module, "func.func")}
        self._places = {name: number for number, name in enumerate(functions)}
        if self._store is None:
            return
        kernels = self._distinct(module, shareable_kernels(module.operation, self._how))
        found = {kernel.key: self._store.get(kernel.key) for kernel in kernels}
        needed = _called_by_others(functions, {kernel.name for kernel in kernels if found[kernel.key] is not None})
        for kernel in kernels:
            data = found[kernel.key]
            self.code_names[kernel.name] = kernel.code_name
            if data is None or kernel.name in needed:
                self.new[kernel.code_name] = kernel
                functions[kernel.name].attributes[SHARED] = ir.StringAttr.get(kernel.code_name, module.context)
                continue
            code = self.known[kernel.code_name] = KernelCode.from_bytes(data)
            self._taken.append(kernel)
            _declare(functions[kernel.name], code)
        _erase_uncalled(module)
        left = walk(module, "func.func")
        self._compiled = {symbol_name(function) for function in left if len(function.regions[0].blocks)}

    def see_buffers(self, module: ir.Module) -> None:
        """Looks which buffers the kernels read, when they are loops over vectors."""
        self._read = {name: read_parameters(function(module, kernel.name)) for name, kernel in self.new.items()}

    def complete(self, remarks: list[Remark], passes: Sequence[str]) -> dict[str, tuple[PortableRemark, ...]]:
        """Adds to what passes said of the kernels that are compiled what was said of the others.

        Whichever are compiled, remarks have one order: that of these passes, then that of kernels in the module.

        Returns:
            what was said of each kernel that is compiled, by the name of its code.
        """
        said = {name: portable(remarks, kernel) for name, kernel in self.new.items()}
        known = {kernel.key: self.known[kernel.code_name].remarks for kernel in self._taken}
        known |= {kernel.key: said[name] for name, kernel in self.new.items()}
        told = set(self._compiled)
        for kernel in (*self._taken, *self._repeated):
            for remark in known[kernel.key]:
                if kernel.names[remark.function] not in told:  # which another one calls, too
                    repeat(remark.on(kernel))
            told.update(kernel.names)
        order = {name: number for number, name in reversed(list(enumerate(passes)))}

        def place(remark: Remark) -> tuple[int, int]:
            kernel = (remark.kernel or "").partition(CHUNK_OF)[0]
            return order.get(remark.pass_name, len(order)), self._places.get(kernel, len(self._places))

        remarks.sort(key=place)
        return said

    def keep(
        self,
        module: ir.Module,
        machine_code: Mapping[str, bytes],
        with_team: Sequence[str],
        said: Mapping[str, tuple[PortableRemark, ...]],
    ) -> None:
        """Brings what has been compiled to the store.

        Args:
            module: in LLVM dialect.
            machine_code: object files by the names of the code in them.
            with_team: the names of the code that calls a team of threads.
            said: see `complete`.
        """
        if self._store is None or not machine_code:
            return
        functions = {symbol_name(function): function for function in walk(module, "llvm.func")}
        entries = {}
        for name, data in machine_code.items():
            kernel = self.new[name]
            attributes = functions[kernel.name].attributes
            taken, scratch = _numbers(attributes, TAKEN), _numbers(attributes, SCRATCH)
            code = KernelCode(taken, scratch, self._read[name], name in with_team, said[name], data)
            entries[kernel.key] = code.to_bytes()
        self._store.put_all(entries)

    def _distinct(self, module: ir.Module, kernels: Sequence[ShareableKernel]) -> list[ShareableKernel]:
        """The kernels of which no other before has the text; that one is called in their places."""
        calls, first = calls_of(module), dict[str, ShareableKernel]()
        for kernel in kernels:
            other = first.setdefault(kernel.key, kernel)
            if other is not kernel:
                self._repeated.append(kernel)
                for call in calls[kernel.name]:
                    if kernel_kind(function_around(call)) is None:
                        call.attributes["callee"] = ir.FlatSymbolRefAttr.get(other.name, module.context)
        return list(first.values())


def _called_by_others(functions: Mapping[str, ir.Operation], known: Collection[str]) -> set[str]:
    """The kernels that those call which are compiled: all that are called but for the `known`, which may be, too."""
    entries = [function for function in functions.values() if kernel_kind(function) is None]
    called = [name for entry in entries for name in calls_of(entry) if kernel_kind(functions[name]) is not None]
    compiled = [name for name in dict.fromkeys(called) if name not in known]
    needed = set[str]()
    for name in compiled:
        inner = calls_of(functions[name]).keys() - needed
        needed |= inner
        compiled += inner
    return needed


def _declare(kernel: ir.Operation, code: KernelCode) -> None:
    """Puts a declaration in the place of a kernel, which says what its code takes."""
    kind = ir.TypeAttr(kernel.attributes["function_type"]).value
    with kernel.location, ir.InsertionPoint(kernel):
        declared = func.FuncOp(symbol_name(kernel), kind, visibility="private").operation
        for name, numbers in ((TAKEN, code.taken), (SCRATCH, code.scratch), (READ, code.read)):
            if numbers is not None:
                declared.attributes[name] = ir.DenseI64ArrayAttr.get(list(numbers))
    kernel.erase()


def _erase_uncalled(module: ir.Module) -> None:
    """Drops kernels that nothing calls, and then those that only they called."""
    while True:
        called = calls_of(module)
        kernels = [function for function in walk(module, "func.func") if KERNEL in function.attributes]
        uncalled = [kernel for kernel in kernels if symbol_name(kernel) not in called]
        if not uncalled:
            return
        for kernel in uncalled:
            kernel.erase()


def _numbers(attributes: ir.OpAttributeMap, name: str) -> tuple[int, ...] | None:
    return tuple(ir.DenseI64ArrayAttr(attributes[name])) if name in attributes else None
