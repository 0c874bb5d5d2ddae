"""What the drivers share: a parser that says what is wrong in one line, and exit codes instead of tracebacks."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from pipeline import logs
from pipeline.errors import PipelineError
from pipeline.installation import DISTRIBUTION
from pipeline.plugins import one_line
from pipeline.tools.versions import VersionAction


class CompletionAction(argparse.Action):
    """The option `--print-completion`: prints what has a shell complete the driver's options, and ends the process."""

    def __call__(self, parser: argparse.ArgumentParser, _: Any, value: Any, *__: Any) -> None:
        """Prints, and exits with 0."""
        try:
            import shtab
        except ImportError:
            parser.error(f"--print-completion needs shtab: pip install '{DISTRIBUTION}[terminal]'")
        sys.stdout.write(f"{shtab.complete(parser, shell=value)}\n")
        parser.exit()


class DriverParser(argparse.ArgumentParser):
    """Has `--version` and `--print-completion`; says what is wrong in one line, with exit code 1."""

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.add_argument("--version", action=VersionAction)
        self.add_argument(
            "--print-completion",
            action=CompletionAction,
            choices=("bash", "zsh", "tcsh"),
            metavar="SHELL",
            help="print what has bash, zsh or tcsh complete these options, and stop; see docs/installing.md",
        )

    def error(self, message: str) -> NoReturn:
        """Prints and exits."""
        raise SystemExit(complain(self.prog, message))


def count(least: int) -> Callable[[str], int]:
    """The type of an option that takes a number from `least`."""

    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"takes a number from {least}, not '{text}'")
        return int(text)

    return number


def complain(program: str, problem: str) -> int:
    """Says what is wrong; returns the exit code."""
    print(f"{program}: error: {problem}", file=sys.stderr)
    return 1


def exit_code(program: str, work: Callable[[], None]) -> int:
    """Does the work of a driver; 0, or 1 with the error said on stderr."""
    try:
        logs.set_up()
        work()
        sys.stdout.flush()
    except PipelineError as error:
        return complain(program, str(error))
    except BrokenPipeError:  # who read our output has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return complain(program, "interrupted")
    except Exception as error:  # a defect of ours, which is no reason to show users a traceback
        return complain(program, f"internal error: {one_line(error)}")
    return 0
