"""What is compared: calls of models, steps of training, language models; each with its workloads and contestants."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contestants import CONTESTANTS, Contestant
from language_contestants import DECODERS
from training_contestants import TRAINERS

if TYPE_CHECKING:
    from workloads import Workload

_BUILD = Path(__file__).resolve().parents[1] / "build"


@dataclass(frozen=True)
class Kind:
    """A kind of workloads; modules that import torch are loaded when they are needed.

    Attributes:
        contestants: who takes part, by name.
        output: where outcomes go by default.
    """

    contestants: Mapping[str, Contestant]
    output: Path
    _workloads: tuple[str, str]
    _report: str

    def workloads(self) -> Mapping[str, Workload]:
        """What is timed, by name."""
        module, name = self._workloads
        found: Mapping[str, Workload] = getattr(importlib.import_module(module), name)
        return found

    def report(self) -> Any:
        """The module with `tables(lines)`, Markdown, and `write_page(lines, console)`, which puts it into docs/."""
        return importlib.import_module(self._report)


KINDS: dict[str, Kind] = {
    "inference": Kind(CONTESTANTS, _BUILD / "benchmarks.jsonl", ("workloads", "WORKLOADS"), "report"),
    "training": Kind(TRAINERS, _BUILD / "training.jsonl", ("training_workloads", "TRAINING"), "training_report"),
    "language": Kind(DECODERS, _BUILD / "language.jsonl", ("language_workloads", "LANGUAGE"), "language_report"),
}
