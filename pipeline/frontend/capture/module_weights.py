"""The tensors that a module has at the moment, by the names that torch.export gave to those that it had before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn

from pipeline.errors import PipelineError

#: A name's place: the names of the modules on the way to it, and its own in the last of them.
_Path = tuple[tuple[str, ...], str]


class ModuleWeights:
    """Looks weights up where the model keeps them, so that parameters that are assigned anew are found."""

    def __init__(self, module: nn.Module, captured: Mapping[str, Any]):
        """`captured` are the tensors by the names of the program; those that the module has no place for are left."""
        self._module = module
        paths = {name: _path(name) for name in captured}
        self._paths = {name: path for name, path in paths.items() if self._find(path) is captured[name]}
        first: dict[int, str] = {}
        self._tied = [(name, first.setdefault(id(captured[name]), name)) for name in self._paths]

    def tensors(self) -> dict[str, Any]:
        """What lies in each weight's place now; None where there is nothing any more.

        Raises:
            PipelineError: what was one tensor under two names is two now, of which the program would read one.
        """
        found = {name: self._find(path) for name, path in self._paths.items()}
        for name, first in self._tied:
            if name != first and not _share_memory(found[name], found[first]):
                message = f"weights {first} and {name}: were one tensor when the model was compiled, and are two now"
                raise PipelineError(f"{message}; tie them again, or compile the model again")
        return found

    def holders(self) -> tuple[dict[str, Any], ...]:
        """The dictionaries on the way to the tensors: those of submodules, then that of the tensor itself."""
        found = {id(holder): holder for path in self._paths.values() for holder in self._way(path)}
        return tuple(found.values())

    def _find(self, path: _Path) -> Any:
        holders = list(self._way(path))
        found = holders[-1].get(path[1]) if len(holders) > len(path[0]) else None
        return found if isinstance(found, torch.Tensor) else None

    def _way(self, path: _Path) -> Iterator[dict[str, Any]]:
        module: Any = self._module
        for name in path[0]:
            yield module._modules
            module = module._modules.get(name)
            if not isinstance(module, nn.Module):
                return
        own = module.__dict__
        yield next((own[kind] for kind in ("_parameters", "_buffers") if path[1] in own[kind]), own)


def _path(name: str) -> _Path:
    *modules, own = name.split(".")
    return tuple(modules), own


def _share_memory(one: torch.Tensor | None, other: torch.Tensor | None) -> bool:
    """Whether two tensors are the same in memory, as far as there are any."""
    if one is None or other is None or one is other:
        return True
    return one.data_ptr() == other.data_ptr() and one.shape == other.shape and one.stride() == other.stride()
