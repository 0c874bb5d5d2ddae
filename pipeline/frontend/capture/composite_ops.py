"""What `ExportedProgram.run_decompositions` does about composite ops, remembered from one run to the next.

Composite ops are those that PyTorch implements by other ops (linear, softmax). Before each run torch looks for all of
them, loaded or not, and registers some twenty kernels for each of the hundreds that it keeps whole; afterwards it takes
them away again. That is most of the time that a small model takes to compile, and it has the same outcome each time.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch._export.utils as export_utils
import torch._subclasses.fake_impls as fake_impls
import torch.export.exported_program as exported_program

from pipeline.frontend.capture.replaced import replaced

#: (module of torch's, function): what is replaced, and what its replacement uses.
_NEEDED = (
    (exported_program, "_override_composite_implicit_decomp"),
    (exported_program, "_is_preservable_cia_op"),
    (export_utils, "_materialize_cpp_cia_ops"),
    (fake_impls, "op_implementations_dict"),
)


@contextlib.contextmanager
def remembered() -> Iterator[None]:
    """Lets `run_decompositions` reuse in the `with` block what it did about composite ops before.

    These are private parts of torch: where one of them is not there, torch does everything itself. One thread at a
    time.
    """
    if not all(hasattr(module, name) for module, name in _NEEDED):
        yield
        return
    once = functools.cache(export_utils._materialize_cpp_cia_ops)  # torch calls it for each namespace of ops
    with (
        replaced(exported_program, "_override_composite_implicit_decomp", _overrides),
        replaced(exported_program, "_is_preservable_cia_op", _is_preservable_cia_op),
        replaced(export_utils, "_materialize_cpp_cia_ops", once),
    ):
        yield


@dataclass(frozen=True)
class _State:
    """What torch looks up about an op: its kernels by dispatch key, and how it runs on fake tensors, if it says so."""

    kernels: dict[Any, Any]
    fake: Any

    @staticmethod
    def of(op: Any) -> _State:
        return _State(dict(op.py_kernels), fake_impls.op_implementations_dict.get(op))

    def install(self, op: Any) -> None:
        op.py_kernels.clear()
        op.py_kernels.update(self.kernels)
        op._dispatch_cache.clear()
        if self.fake is None:
            fake_impls.op_implementations_dict.pop(op, None)
        else:
            fake_impls.op_implementations_dict[op] = self.fake


@dataclass(frozen=True)
class _Override:
    """What torch made of an op: the decomposition it was given, the op's state before and inside, and afterwards."""

    decomposition: Any
    before: _State
    inside: _State


_known: dict[Any, _Override] = {}
_torchs_overrides = exported_program.__dict__.get("_override_composite_implicit_decomp")


@contextlib.contextmanager
def _overrides(table: Mapping[Any, Any]) -> Iterator[None]:
    """Torch's `_override_composite_implicit_decomp`: in the `with` block the composite ops of `table` are taken apart
    by its functions, or kept whole where a function says so.
    """
    fresh, known = [], []
    for op, function in table.items():
        now, override = _State.of(op), _known.get(op)
        if override is not None and override.decomposition is function and override.before == now:
            known.append((op, override))
        else:
            fresh.append((op, function, now))
    with _torchs_overrides({op: function for op, function, _ in fresh}):
        for op, function, before in fresh:
            _known[op] = _Override(function, before, _State.of(op))
        for op, override in known:
            override.inside.install(op)
        try:
            yield
        finally:
            for op, override in known:
                override.before.install(op)


_is_preservable = exported_program.__dict__.get("_is_preservable_cia_op")
_preservable: dict[Any, bool] = {}


def _is_preservable_cia_op(op: Any) -> bool:
    """Torch's own function, asked once about each op of PyTorch's: only those of others may change."""
    if not op.name().startswith("aten::"):
        return _is_preservable(op)
    if op not in _preservable:
        _preservable[op] = _is_preservable(op)
    return _preservable[op]
