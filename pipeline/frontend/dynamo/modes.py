"""What users choose in torch.compile: `options=`, those of `pipeline.compile`, or else a `mode=`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.errors import OptionError
from pipeline.options import Options

#: How long a graph's kernels may be measured with mode="max-autotune".
TUNE_SECONDS = 60

#: The options that torch.compile's modes stand for. Calls have little overhead in any of them.
MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "reduce-overhead": {},
    "max-autotune": {"tune": TUNE_SECONDS},
    "max-autotune-no-cudagraphs": {"tune": TUNE_SECONDS},
}


def options_of(options: Mapping[str, Any] | None, mode: str | None) -> Options:
    """The options of a compilation; raises `OptionError` for a mode or an option that there is not."""
    if mode is not None and mode not in MODES:
        raise OptionError(f"mode={mode!r}: expected one of {', '.join(MODES)}")
    return Options.create({**MODES[mode or "default"], **(options or {})})
