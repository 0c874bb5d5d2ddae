"""Kernels whose code is shared, in LLVM IR text: a unit each, and what is left of the module."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from pipeline.targets.cpu.machine_code import Unit
from pipeline.targets.cpu.shared_kernels.kernel_text import ShareableKernel
from pipeline.targets.cpu.split_module import ModuleText, by_kind

_NAME = re.compile(r"@([\w.$-]+)")


def with_code_names(text: str, code_names: Mapping[str, str]) -> str:
    """A module's text in which kernels are called as their code is."""
    return _NAME.sub(lambda match: f"@{code_names.get(match[1], match[1])}", text)


def kernel_units(module: ModuleText, kernels: Mapping[str, ShareableKernel]) -> dict[str, Unit]:
    """A unit for each kernel, with copies of all that it calls, by the name of its code."""
    return {name: _unit(module, name, kernel.once) for name, kernel in kernels.items()}


def functions_beside(module: ModuleText, kernels: Collection[str]) -> list[str]:
    """The functions of a module that are not parts of these kernels alone."""
    inside = set(module.reachable(kernels))
    return module.reachable([name for name in module.functions if name not in inside], without=kernels)


def _unit(module: ModuleText, kernel: str, once: bool) -> Unit:
    names = module.reachable([kernel])
    vectors, others = by_kind({name: module.functions[name] for name in names}, 0, once=once).values()
    if not vectors or not others:
        return Unit(module.part(names).text, "", (kernel,), (), is_vectors=not others)
    return Unit(module.part(others).text, "", (kernel,), (), vectors=module.part(vectors).text)
