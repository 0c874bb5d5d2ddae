"""torch's traces without what nobody here reads: a tenth of the time that they take, a sixth more of symbolic sizes.

Of each value that a graph has torch notes the layout beside the tensor that says all about it. And it keeps what ops do
with fake tensors, of which it makes one more for each op that is new to it, only to see that its dispatch keys are
those of the result: of a plain tensor they are. It stays where sizes are read from tensors: by it torch sees there what
it must not keep. So do layouts with symbolic sizes: noting one asks which of those are one, by which views are proved.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx import proxy
from torch.fx.experimental import proxy_tensor
from torch.fx.experimental.symbolic_shapes import has_free_unbacked_symbols, uninteresting_files

from pipeline.frontend.capture.lines_of_ops import with_lines_of_users
from pipeline.frontend.capture.replaced import replaced


@contextlib.contextmanager
def lean_traces() -> Iterator[None]:
    """Has torch leave that out in the `with` block; one thread at a time, while others may trace for themselves."""
    uninteresting_files().add(__file__)  # torch's record of who asked about a size looks through these frames
    new = _New()
    with (
        replaced(proxy.TracerBase, "create_node", with_lines_of_users()),
        replaced(proxy_tensor, "_extract_tensor_metadata", _layout_if_symbolic),
        replaced(FakeTensorMode, "_get_output_info_for_cache_entry", _noting(new)),
        replaced(FakeTensorMode, "_output_from_cache_entry", _or_noted(new)),
    ):
        yield


_extract_layout = proxy_tensor._extract_tensor_metadata


def _layout_if_symbolic(result: torch.Tensor) -> Any:
    return _extract_layout(result) if result._has_symbolic_sizes_strides else None


class _New(threading.local):
    """The plain result that this thread is about to keep, if any."""

    output: Any = None


def _noting(new: _New) -> Callable[..., Any]:
    original = FakeTensorMode._get_output_info_for_cache_entry

    def kept(mode: FakeTensorMode, state: Any, key: Any, func: Any, args: Any, kwargs: Any, output: Any) -> Any:
        new.output = output if _is_plain(output) else None
        try:
            return original(mode, state, key, func, args, kwargs, output)
        finally:
            new.output = None

    return kept


def _or_noted(new: _New) -> Callable[..., Any]:
    original = FakeTensorMode._output_from_cache_entry

    def output(mode: FakeTensorMode, *entry: Any) -> Any:
        return original(mode, *entry) if new.output is None else new.output

    return output


def _is_plain(output: Any) -> bool:
    """Whether a result has the dispatch keys of any tensor of its type, and no sizes that are read from tensors."""
    return (
        type(output) is FakeTensor
        and output.layout == torch.strided
        and not (output._has_symbolic_sizes_strides and has_free_unbacked_symbols(output))
        and not (output.is_conj() or output.is_neg() or output._is_zerotensor() or output.is_quantized)
    )
