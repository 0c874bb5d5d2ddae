"""What a search has found: the pass, the program that shows it, both results, and the command that replays it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from pipeline import plugins
from pipeline.debug.extraction import Part
from pipeline.debug.judgement import RunResults
from pipeline.errors import PipelineError
from pipeline.mlir import callee, function, ir, walk
from pipeline.remarks import source_line
from pipeline.runtime.interface.atomic_files import replacing


@dataclass(frozen=True)
class Finding:
    """See the module's docstring.

    Attributes:
        kind: the pass changes the numbers (`wrong`), crashes or raises an error (`failed`), makes code slower
            (`slower`); or code is wrong though its IR on tensors is right (`lowering`).
        pass_name: the pass, or `the lowering` where it is one that cannot be left out.
        pipeline: what to run on the part, for pipeline-opt.
        part: the program before the pass, reduced, with what it is called with.
        problem: what is wrong, in words.
        expected, got: what became of the part before and after the pass.
    """

    kind: Literal["wrong", "failed", "slower", "lowering"]
    pass_name: str
    pipeline: str
    part: Part
    problem: str
    expected: RunResults
    got: RunResults

    @property
    def kernels(self) -> list[str]:
        """Those that the part has or is inside of, groups among them; of a slow pass those that it makes slower."""
        if self.kind == "slower":
            return list(self.part.kernels)
        calls = [callee(call) for call in walk(self.part.module, "func.call")]
        groups = [ir.StringAttr(group.attributes["label"]).value for group in walk(self.part.module, "fusion.group")]
        return list(dict.fromkeys([*self.part.kernels, *calls, *groups]))

    @property
    def ops(self) -> list[str]:
        """The ops of the part's @main, each with its source line where that is known."""
        block = function(self.part.module, "main").regions[0].blocks[0]
        ops = [op.operation for op in block.operations][:-1]
        named = [(op.name, source_line(op.location)) for op in ops if op.name not in ("arith.constant", "tensor.empty")]
        return [f"{name} at {line}" if line else name for name, line in named]

    def __str__(self) -> str:
        what = {
            "wrong": f"pass '{self.pass_name}' changes the numbers",
            "failed": f"pass '{self.pass_name}' fails",
            "slower": f"pass '{self.pass_name}' makes the code slower",
            "lowering": f"the numbers change behind the passes on tensors, in '{self.pass_name}'",
        }[self.kind]
        lines = [f"{what}: {self.problem}"]
        if self.kernels:
            lines.append(f"  in kernel {', '.join(self.kernels)}")
        lines += [f"  op: {op}" for op in self.ops[:8]] if self.kind != "slower" else []
        if self.kind in ("wrong", "lowering"):
            lines += [f"  expected: {self.expected}", f"  got: {self.got}"]
        return "\n".join(lines)

    def write(self, folder: str | Path) -> Path:
        """Writes `reduced.mlir`, its arguments and both results as .npy files to a folder; the path of the .mlir.

        Of a slow pass there is the program alone, which is whole.

        Raises:
            PipelineError: it cannot be written.
        """
        path = Path(folder)
        try:
            path.mkdir(parents=True, exist_ok=True)
            with replacing(path / "reduced.mlir") as temporary:
                temporary.write_text(str(self.part.module))
            for number, value in enumerate(() if self.kind == "slower" else self.part.positional()):
                np.save(path / f"input{number}.npy", value, allow_pickle=False)
            for name, outcome in (("expected", self.expected), ("got", self.got)):
                for number, value in enumerate(outcome.results):
                    np.save(path / f"{name}{number}.npy", value, allow_pickle=False)
        except OSError as error:
            raise PipelineError(f"{path}: cannot be written: {error.strerror or error}") from None
        return path / "reduced.mlir"

    def command(self, reduced: Path, loaded: Sequence[Path] | None = None) -> str:
        """What replays the pass on the reduced program."""
        files = plugins.files() if loaded is None else loaded
        flags = [f"--load-plugin={file}" for file in files]
        return shlex.join(["pipeline-opt", str(reduced), f"--pass-pipeline={self.pipeline}", *flags])
