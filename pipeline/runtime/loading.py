"""Which class of code and of executable there is for what."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pipeline.runtime.executable import Executable
from pipeline.runtime.foreign_executable import ForeignExecutable
from pipeline.runtime.interface.code import Code
from pipeline.runtime.native.cpu_features import why_foreign

if TYPE_CHECKING:
    from pipeline.runtime.device.device_code import DeviceCode


def make_executable(code: Code | DeviceCode, *arguments: Any, **options: Any) -> Executable:
    """An executable of the kind that `code` is for; the rest are the arguments of `Executable` after the code."""
    kind: Callable[..., Executable] = Executable
    if not isinstance(code, Code):
        from pipeline.runtime.device_executable import DeviceExecutable  # not loaded for CPUs

        kind = DeviceExecutable
    elif why_foreign(code.machine, code.cpu, code.required) is not None:
        kind = ForeignExecutable
    return kind(code, *arguments, **options)


def code_from_json(data: dict[str, Any], objects: tuple[bytes, ...]) -> Code | DeviceCode:
    """The inverse of `to_json`, for code of either kind."""
    if "launches" not in data:
        return Code.from_json(data, objects)
    from pipeline.runtime.device.device_code import DeviceCode

    return DeviceCode.from_json(data, objects)
