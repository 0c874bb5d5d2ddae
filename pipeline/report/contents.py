"""What a report has: plain data in the form that the page reads, in parts that are unpacked when they are looked at."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

#: Goes up with every change of the form; pages of another version are not compared.
VERSION = 1


@dataclass
class Contents:
    """A report as JSON values.

    Attributes:
        summary: what the model is, when and how it was compiled, what it takes, what is missing and why.
        kernels: each with its work, its places in the program, the remarks on it and what was chosen for it.
        graphs: the program `imported` and `compiled`, see `pipeline.report.recording.Graph`.
        nodes: of the captured graph, by name: path of the module, source line.
        edges: what goes from one kernel to another, why the two are not one, and what would change that.
        remarks: all remarks.
        profile: what was measured; None if nothing was.
        memory: how many bytes there are of what, the plans of workspaces, the weights.
        passes: in order, without what they changed.
        changes: what each pass changed: of each a list of functions.
        texts: MLIR by stage and function.
        sources: the files of the model by their path, line by line.
    """

    summary: dict[str, Any]
    kernels: list[dict[str, Any]] = field(default_factory=list)
    graphs: dict[str, Any] = field(default_factory=dict)
    nodes: dict[str, Any] = field(default_factory=dict)
    edges: list[dict[str, Any]] = field(default_factory=list)
    remarks: list[dict[str, Any]] = field(default_factory=list)
    profile: dict[str, Any] | None = None
    memory: dict[str, Any] = field(default_factory=dict)
    passes: list[dict[str, Any]] = field(default_factory=list)
    changes: list[list[dict[str, Any]]] = field(default_factory=list)
    texts: dict[str, dict[str, str]] = field(default_factory=dict)
    sources: dict[str, Any] = field(default_factory=dict)

    def parts(self) -> dict[str, Any]:
        """The JSON values by the part of the page that they are for; `main` is needed at once."""
        main = {name: value for name, value in vars(self).items() if name not in ("changes", "texts", "sources")}
        return {"main": main, "changes": self.changes, "texts": self.texts, "sources": self.sources}
