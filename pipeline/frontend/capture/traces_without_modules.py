"""torch.fx's traces of functions that call no modules.

While it traces, torch.fx puts functions of its own in the place of nn.Module's, which makes Python forget what it knows
of each of that class's subclasses: with transformers loaded, those are more than a thousand, and it is a tenth of the
time that the trace of a single op takes.
"""

from __future__ import annotations

import contextlib
from typing import Any

from torch.fx import _symbolic_trace

from pipeline.frontend.capture.replaced import replaced


class _ModulesUnpatched(_symbolic_trace._Patcher):
    """Leaves methods as they are."""

    def patch_method(self, *_: Any, **__: Any) -> None:
        """Does nothing."""


def traces_without_modules() -> contextlib.AbstractContextManager[None]:
    """For a `with` block in which no module is traced; one thread at a time."""
    return replaced(_symbolic_trace, "_Patcher", _ModulesUnpatched)
