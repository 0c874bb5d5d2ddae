"""Functions as models, for tests of any part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


class Function(torch.nn.Module):
    """A model that computes what a function does."""

    def __init__(self, function: Callable[..., Any]):
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls it."""
        return self.function(*args, **kwargs)
