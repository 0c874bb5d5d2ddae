"""torch.compile(model, backend="pipeline"): what dynamo captures, as compiled code that dynamo calls."""

from pipeline.frontend.dynamo.backend import pipeline_backend
from pipeline.frontend.dynamo.registry import executables

__all__ = ["executables", "pipeline_backend"]
