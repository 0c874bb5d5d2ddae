"""What a target is: how kernels become code for a processor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from pipeline.mlir import ir
from pipeline.runtime.code import Code
from pipeline.runtime.device import DeviceCode
from pipeline.runtime.signature import Signature

Dump = Callable[[str, ir.Module | str], None]


class Target(ABC):
    """A processor that code is generated for."""

    @abstractmethod
    def compile(self, module: ir.Module, signature: Signature, dump: Dump) -> Code | DeviceCode:
        """Lowers a module of `@main`, `@prepare` and kernels to code; `dump` sees it at the stage `llvm`."""
