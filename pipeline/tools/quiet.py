"""What torch and libraries on it say of their own insides: not on the terminal of a driver."""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import os
import warnings
from collections.abc import Callable
from typing import Any

_LOGGERS = ("torch", "torchao")


def silence_torch() -> None:
    """Has torch and torchao log errors alone, unless TORCH_LOGS asks for more, and warn of nothing in their files.

    Call it again when torch has been loaded: that sets the levels of its logs.
    """
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # torch reads it as it is loaded
    warnings.filterwarnings("ignore", module="torch|torchao|copyreg")
    for name in _LOGGERS if "TORCH_LOGS" not in os.environ else ():
        logging.getLogger(name).setLevel(logging.ERROR)


def load_torch_silently() -> None:
    """Loads torch, and has it be silent from then on."""
    silence_torch()
    importlib.import_module("torch")
    silence_torch()


def quietly(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls it. Torch explains what it cannot capture in many lines of logs and graphs; our error says it in one."""
    silence_torch()
    with contextlib.redirect_stderr(io.StringIO()):
        return function(*args, **kwargs)
