"""compile(): the way of a model through the house, a stage a line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import OptionError, PipelineError
from pipeline.remarks import collect
from pipeline.runtime.executable import Executable
from pipeline.mlir import ir, text
from pipeline.targets import cpu

if TYPE_CHECKING:
    from pipeline.frontend.program import Program
