"""Ray: models on more than one machine.

`map_batches` runs a model over a dataset, `tune` measures variants of kernels on many machines, `compile_all` compiles
many models, and `deployment` serves one. `rows_of` tells whether two datasets have the same rows. All of them work on
the cluster that `ray.init` has joined, or on this machine, see docs/scale.md. Importing this package does not import
ray.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from pipeline.errors import PipelineError
from pipeline.installation import DISTRIBUTION

if TYPE_CHECKING:
    from pipeline.ray.accounts import Rows, rows_of
    from pipeline.ray.batches import map_batches
    from pipeline.ray.serving import deployment
    from pipeline.ray.tuning import Tuned, tune
    from pipeline.ray.zoo import Compiled, compile_all

__all__ = ["Compiled", "Rows", "Tuned", "compile_all", "deployment", "map_batches", "rows_of", "tune"]

_MODULES = {
    "Compiled": "zoo",
    "Rows": "accounts",
    "Tuned": "tuning",
    "compile_all": "zoo",
    "deployment": "serving",
    "map_batches": "batches",
    "rows_of": "accounts",
    "tune": "tuning",
}


def __getattr__(name: str) -> Any:
    """What `_MODULES` names; raises `PipelineError` where ray is not installed."""
    if name not in _MODULES:
        raise AttributeError(f"module 'pipeline.ray' has no attribute {name!r}")
    if importlib.util.find_spec("ray") is None:
        raise PipelineError(f"pipeline.ray.{name} needs ray: pip install '{DISTRIBUTION}[ray]'")
    found = getattr(importlib.import_module(f"pipeline.ray.{_MODULES[name]}"), name)
    globals()[name] = found
    return found
