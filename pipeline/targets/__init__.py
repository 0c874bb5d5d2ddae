"""Targets: the processors that code is generated for."""

from __future__ import annotations

from pipeline.errors import OptionError
from pipeline.targets.common.target import PLAIN, CodeForm, Target

TARGETS = ("cpu", "vulkan", "cuda:sm_90")


def create(name: str, cpu: str, disable: frozenset[str] = frozenset(), form: CodeForm = PLAIN) -> Target:
    """The target called `name`, for the CPU `cpu` where it is one; raises `OptionError` for a name that isn't known.

    Passes of its own that are in `disable` are left out.
    """
    if name == "cpu":
        from pipeline.targets.cpu.target import CpuTarget

        return CpuTarget(cpu, disable, form)
    if form.profile:
        raise OptionError(f"profile: kernels are timed on the target cpu only, not on {name}")
    if form.rounds:
        raise OptionError(f"precision='bf16': contractions round their operands on the target cpu only, not on {name}")
    if form.winograd != PLAIN.winograd:
        raise OptionError(f"winograd={form.winograd}: Winograd's algorithm is for the target cpu only, not for {name}")
    if name == "vulkan":
        from pipeline.targets.vulkan.target import VulkanTarget

        return VulkanTarget(disable)
    if name.startswith("cuda:"):
        from pipeline.targets.cuda.target import CudaTarget

        return CudaTarget(name.partition(":")[2], disable)
    raise OptionError(f"target={name!r}: expected {' or '.join(TARGETS)}")
