"""The errors that users see.

Every way into `pipeline` raises a `PipelineError` or one of its subclasses for bad input; anything else that escapes is
a defect. A message names the thing that is wrong, says what was expected, and what to do about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pipeline.diagnostics import Diagnostic


class PipelineError(RuntimeError):
    """Base of all errors that `pipeline` raises on purpose; a RuntimeError, as what PyTorch raises in its place."""


class OptionError(PipelineError):
    """An option that does not exist, or a value that it does not take."""


class CaptureError(PipelineError):
    """The model could not be captured as a graph (torch.export, TorchScript, torch.compile)."""


class UnsupportedOpError(PipelineError):
    """The model has ops that cannot be lowered.

    Attributes:
        ops: one `(op name, source line or None, reason)` for each op, in the order of the graph.
        nodes: the names of the FX nodes that these come from, as far as they are known.
    """

    def __init__(self, ops: Sequence[tuple[str, str | None, str]], nodes: Iterable[str] = ()):
        lines = [f"  {name} at {source or 'unknown source line'}: {reason}" for name, source, reason in ops]
        count = "1 op" if len(lines) == 1 else f"{len(lines)} ops"
        advice = "write the model without them, or with other arguments to them"
        super().__init__("\n".join([f"{count} of the model cannot be lowered; {advice}:", *lines]))
        self.ops = list(ops)
        self.nodes = frozenset(nodes)


class CompileError(PipelineError):
    """A pass or the code generator failed on a program that should have compiled.

    Attributes:
        diagnostics: what MLIR or the pass said, with positions; may be empty.
    """

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic] = ()):
        super().__init__(message)
        self.diagnostics = tuple(diagnostics)


class CheckError(CompileError):
    """`check=True`: a pass changes the numbers of the program, or its code computes others."""


class LoweringError(CompileError):
    """torch-mlir gave up on a graph, and on none of its ops alone."""


class UnsupportedTypeError(PipelineError):
    """An argument, a weight or a result is a tensor of a dtype or layout that compiled code does not have."""


class ArgumentError(PipelineError):
    """An argument of a call does not fit the executable's signature."""


class ArtifactError(PipelineError):
    """A file is not an artifact that this machine and this version can load."""


class FusionError(PipelineError, AssertionError):
    """Ops that should be one kernel are not, or the other way round."""
