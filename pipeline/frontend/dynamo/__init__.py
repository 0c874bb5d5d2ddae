"""torch.compile(model, backend="pipeline"): what dynamo captures, as compiled code that dynamo calls."""

from pipeline.frontend.dynamo.backend import pipeline_backend
from pipeline.frontend.dynamo.registry import executables
from pipeline.frontend.fallback.fakes import register_fakes

__all__ = ["executables", "pipeline_backend"]

register_fakes()  # before dynamo's first trace: torch.compile looks the backend up
