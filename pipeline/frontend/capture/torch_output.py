"""What torch writes to the terminal while it captures a model."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

import torch.export._trace as export_trace

#: These log pages about errors that are raised, too.
_LOGGERS = ("torch._guards", "torch._subclasses.fake_tensor", "torch.fx.experimental.symbolic_shapes")


@contextlib.contextmanager
def kept_back() -> Iterator[None]:
    """Keeps back the pages that torch logs of errors that it raises, and the graph up to them that it prints."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    were_disabled = [logger.disabled for logger in loggers]
    vars(export_trace)["print"] = lambda *args, **kwargs: None  # in front of the builtin, for that module alone
    try:
        for logger in loggers:
            logger.disabled = True
        yield
    finally:
        vars(export_trace).pop("print", None)
        for logger, was_disabled in zip(loggers, were_disabled, strict=True):
            logger.disabled = was_disabled
