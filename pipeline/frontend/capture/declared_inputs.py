"""Models of files that declare the shapes of their inputs."""

from __future__ import annotations

import abc
from typing import Any

from torch import nn


class DeclaredInputs(nn.Module, abc.ABC):
    """A module that runs what a file has, and knows what it is to be traced on."""

    @abc.abstractmethod
    def completed(self, args: tuple[Any, ...] | None, dynamic_shapes: Any) -> tuple[tuple[Any, ...], Any]:
        """The example arguments and dynamic shapes, those that the file declares where none are given."""
