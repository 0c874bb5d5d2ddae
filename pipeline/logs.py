"""The logs of pipeline, a tree of the standard library's `logging`: what there is, and levels by the environment.

    PIPELINE_LOG=passes,cache:debug python train.py

A program that sets up logging itself gets what the tree says where it wants it; else it goes to stderr.
"""

from __future__ import annotations

import functools
import logging
import os

from pipeline.errors import OptionError

#: The logs below `pipeline`, and what each says.
LOGS = {
    "compile": "stages of compilations and how long they take; with debug, passes too",
    "passes": "each pass that has run, and how long it took",
    "cache": "what the disk cache had, had not, and keeps; with debug, why it is not asked",
    "remarks": "decisions of passes: what was left undone; with debug, what was done too",
    "weights": "weights that have changed, so that what depends on them is prepared again",
    "dynamo": "graphs that torch.compile has compiled",
    "ray": "jobs on the machines of a cluster, and workers that are lost",
}

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}

#: What stands before a name, in the way of TORCH_LOGS.
_SIGNS = {"+": logging.DEBUG, "-": logging.ERROR}


def log(name: str) -> logging.Logger:
    """One of `LOGS`."""
    assert name in LOGS, name
    return logging.getLogger(f"pipeline.{name}")


def levels(text: str) -> dict[str, int]:
    """The level of each log that a text like `passes,cache:debug` names; without a level it is `info`.

    `all` stands for all of them; `+cache` is `cache:debug`, `-cache` is `cache:error`.

    Raises:
        OptionError: there is no such log or level; lists those that there are.
    """
    found: dict[str, int] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        sign = _SIGNS.get(part[0])
        name, colon, level = part.removeprefix(part[0] if sign else "").partition(":")
        if name != "all" and name not in LOGS:
            raise OptionError(f"PIPELINE_LOG={text}: there is no log {name!r}; there are all, {', '.join(LOGS)}")
        if colon and level.lower() not in _LEVELS:
            raise OptionError(f"PIPELINE_LOG={text}: there is no level {level!r}; there are {', '.join(_LEVELS)}")
        value = _LEVELS[level.lower()] if colon else sign or logging.INFO
        found |= dict.fromkeys(LOGS, value) if name == "all" else {name: value}
    return found


def is_verbose() -> bool:
    """Whether PIPELINE_VERBOSE asks for the log `compile`."""
    return os.environ.get("PIPELINE_VERBOSE", "0") not in ("", "0")


@functools.cache
def set_up() -> None:
    """Sets the levels that the environment asks for, once in a process; raises `OptionError` as `levels` does.

    Else the logs are silent, whatever the root says: who asks a program for its own lines asks for none of ours.
    """
    wanted = levels(os.environ.get("PIPELINE_LOG", ""))
    root = logging.getLogger("pipeline")
    if root.level == logging.NOTSET:
        root.setLevel(logging.WARNING)
    if is_verbose():
        wanted.setdefault("compile", logging.INFO)
    for name, level in wanted.items():
        log(name).setLevel(level)
    if wanted:
        show()


@functools.cache
def show() -> None:
    """Has the logs written to what is stderr now, for as long as the program has not said where logs go."""
    logging.getLogger("pipeline").addHandler(_Stderr())


class _Stderr(logging.StreamHandler):
    """Writes lines that are led by the log's name, if nobody else does."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.root.handlers:
            super().emit(record)
