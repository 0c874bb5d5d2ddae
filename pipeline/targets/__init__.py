"""Targets: the processors that code is generated for, by the names that users call them."""

from __future__ import annotations

import importlib

from pipeline import plugins
from pipeline.errors import OptionError
from pipeline.targets.common.target import PLAIN, CodeForm, KernelStore, Target

__all__ = ["PLAIN", "CodeForm", "KernelStore", "Target", "create", "known_targets"]

#: Our own, by family; they are loaded when they are asked for. Those of plugins are `Target` classes in their modules.
_OWN = {
    "cpu": "pipeline.targets.cpu.target:CpuTarget",
    "cuda": "pipeline.targets.cuda.target:CudaTarget",
    "vulkan": "pipeline.targets.vulkan.target:VulkanTarget",
}

#: What of a `CodeForm` only some targets honour, and what to say where one does not.
_REFUSALS = {
    "profile": "profile: kernels are timed on the target cpu only, not on {name}",
    "rounds": "precision='bf16': contractions round their operands on the target cpu only, not on {name}",
    "weight_bits": "weights='int{value}': weights are quantized for the target cpu only, not for {name}",
    "keep": "keep={value!r}: weights are rounded for the target cpu only, not for {name}",
    "quantizes_data": "activations='int8': data is quantized for the target cpu only, not for {name}",
    "winograd": "winograd={value}: Winograd's algorithm is for the target cpu only, not for {name}",
}


def create(name: str, cpu: str, disable: frozenset[str] = frozenset(), form: CodeForm = PLAIN) -> Target:
    """The target called `name`, `family` or `family:variant`, for the CPU `cpu` where it is one.

    Passes of its own that are in `disable` are left out.

    Raises:
        OptionError: the name is not known, or the target does not make code of that form; a plugin cannot be loaded.
    """
    family, colon, variant = name.partition(":")
    kind = _kind(family)
    if kind is None or bool(colon) != kind.has_variants:
        raise OptionError(f"target={name!r}: expected {' or '.join(known_targets())}")
    for field, refusal in _REFUSALS.items():
        value = getattr(form, field)
        if value != getattr(PLAIN, field) and field not in kind.honours:
            raise OptionError(refusal.format(name=name, value=value))
    return kind.create(variant, cpu, disable, form)


def known_targets() -> list[str]:
    """Names of targets, ours and those of plugins; one example of each family."""
    own = [_load(path).example for path in _OWN.values()]
    return [*sorted(own, key=lambda name: ":" in name), *sorted(kind.example for kind in _of_plugins().values())]


def _kind(family: str) -> type[Target] | None:
    return _load(_OWN[family]) if family in _OWN else _of_plugins().get(family)


def _load(path: str) -> type[Target]:
    module, _, name = path.partition(":")
    kind: type[Target] = getattr(importlib.import_module(module), name)
    return kind


def _of_plugins() -> dict[str, type[Target]]:
    """Those of plugins by family; raises `OptionError` where two are of one family, or one says less than it has to."""
    found: dict[str, type[Target]] = {}
    owners = dict.fromkeys(_OWN, "pipeline")
    for plugin in plugins.plugins():
        for kind in plugin.classes(Target, ("family", "example", "fusion_rules")):
            if kind.family in owners:
                raise OptionError(
                    f"plugin {plugin.owner}: the target {kind.family!r} is already there, from {owners[kind.family]}"
                )
            found[kind.family], owners[kind.family] = kind, plugin.owner
    return found
