"""Models as jobs take them: by name, and captured and compiled on the machine that has the job."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import ray

from pipeline.errors import OptionError
from pipeline.options import Options

#: A model and its example arguments, `(model, args)` or `(model, args, kwargs)`, or what makes them on the machine.
Model = tuple[Any, ...] | Callable[[], tuple[Any, ...]]


def checked(models: Mapping[str, Model], options: Mapping[str, Any]) -> None:
    """Raises `OptionError` where options are wrong, or a model is none of `Model`, before anything is sent."""
    Options.create(options)
    for name, model in models.items():
        if not callable(model) and not (isinstance(model, tuple) and 2 <= len(model) <= 3):
            raise OptionError(f"{name}: expected (model, args), (model, args, kwargs) or a function that returns these")


def sent(models: Mapping[str, Model]) -> dict[str, ray.ObjectRef]:
    """The models in the object store, by name."""
    return {name: ray.put(model) for name, model in models.items()}


def arguments_of(model: Model) -> tuple[Any, ...]:
    """What `pipeline.compile` takes: (model, args, kwargs)."""
    found = model if isinstance(model, tuple) else model()
    return (*found, None)[:3]


def environment(url: str | None) -> dict[str, str]:
    """The variables by which workers find the cache behind a URL, and that alone: what a disk has may not be there."""
    if url is None:
        return {}
    secret = os.environ.get("PIPELINE_CACHE_SECRET")
    return {"PIPELINE_CACHE_URL": url, "PIPELINE_CACHE_SIZE": "0"} | (
        {"PIPELINE_CACHE_SECRET": secret} if secret else {}
    )


def shared_url(url: str | None) -> str | None:
    """Where results are shared: as the caller or else the environment says."""
    return url or os.environ.get("PIPELINE_CACHE_URL") or None
