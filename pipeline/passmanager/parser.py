"""The parser of textual pass pipelines: names, options and nesting are checked here, before MLIR sees anything."""

from __future__ import annotations

import functools
import re

from pipeline.errors import OptionError
from pipeline.mlir import PassManager, ir
from pipeline.passmanager import mlir_passes, registry
from pipeline.passmanager.options import nearest, scan
from pipeline.passmanager.pass_runner import ANY, MlirPass, PipelineStep

ROOT = "builtin.module"
_NAME = re.compile(r"[A-Za-z_][\w.$-]*")
_MAX_DEPTH = 64
_PARENTS = {"builtin.module": ("builtin.module",), "func.func": ("builtin.module", "gpu.module")}


class PipelineParser:
    """Recursive descent over the text of a pipeline; every error says at which column."""

    def __init__(self, text: str):
        self.text = text
        self.at = 0

    def pipeline(self) -> list[PipelineStep]:
        """Parses the whole: `builtin.module(elements)`, `any(elements)` or just `elements`."""
        wrapped = self._name() in (ROOT, ANY) and self._accept("(")
        if not wrapped:
            self.at = 0
        steps = self._elements((ROOT,))
        if wrapped:
            self._expect(")")
        if self._peek():
            raise self._error("expected nothing more" if wrapped else "expected ',' or the end")
        return steps

    def _elements(self, anchors: tuple[str, ...]) -> list[PipelineStep]:
        """Parses elements with commas between them; there may be none."""
        if len(anchors) > _MAX_DEPTH:
            raise self._error("nested too deep")
        if self._peek() in ("", ")"):
            return []
        steps = self._element(anchors)
        while self._accept(","):
            steps += self._element(anchors)
        return steps

    def _element(self, anchors: tuple[str, ...]) -> list[PipelineStep]:
        """Parses `op(elements)`, `pass` or `pass{options}`."""
        self._peek()
        start = self.at
        name = self._name()
        if not name:
            raise self._error("expected the name of a pass or of an op")
        if self._accept("("):
            steps = self._elements((*anchors, name))
            self._expect(")")
            return steps
        try:
            return [_step(name, self._options(), anchors)]
        except OptionError as error:
            self.at = start
            raise self._error(str(error)) from None

    def _options(self) -> str:
        """The text between `{` and its `}`, which may hold quotes and braces; empty if no `{` follows."""
        if self._peek() != "{":
            return ""
        start = self.at
        for index, _, depth in scan(self.text, start):
            if depth == 0:
                self.at = index + 1
                return self.text[start + 1 : index].strip()
        raise OptionError("expected '}' to close the options")

    def _name(self) -> str:
        self._peek()
        match = _NAME.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return match.group() if match else ""

    def _peek(self) -> str:
        while self.text[self.at : self.at + 1].isspace():
            self.at += 1
        return self.text[self.at : self.at + 1]

    def _accept(self, char: str) -> bool:
        found = self._peek() == char
        self.at += found
        return found

    def _expect(self, char: str) -> None:
        if not self._accept(char):
            raise self._error(f"expected '{char}'")

    def _error(self, problem: str) -> OptionError:
        return OptionError(f"pass pipeline, column {self.at + 1}: {problem}")


def _step(name: str, options: str, anchors: tuple[str, ...]) -> PipelineStep:
    if name not in mlir_passes.PASSES:
        cls = registry.get(name)
        _check_nesting(name, cls.anchor, anchors[-1])
        return PipelineStep(_parse_ours(cls, options), anchors)
    mlir_pass = MlirPass(name, " ".join(options.split()))
    _check_nesting(name, mlir_pass.anchor, anchors[-1])
    _check_mlir_options(mlir_pass)
    return PipelineStep(mlir_pass, anchors if mlir_pass.anchor in (ANY, anchors[-1]) else (*anchors, mlir_pass.anchor))


def _parse_ours(cls: type[registry.Pass], options: str) -> registry.Pass:
    try:
        return cls.parse(options)
    except OptionError as error:
        raise OptionError(f"pass '{cls.name}': {error}") from None


def _check_nesting(name: str, anchor: str, parent: str) -> None:
    """Refuses a pass inside an op that cannot hold the op it runs on."""
    if ANY in (anchor, parent) or anchor == parent or parent in _PARENTS.get(anchor, (parent,)):
        return
    raise OptionError(f"pass '{name}' runs on '{anchor}' and cannot be nested in '{parent}'")


def _check_mlir_options(mlir_pass: MlirPass) -> None:
    if not mlir_pass.options:
        return
    try:
        _parse_alone(str(mlir_pass))
    except ValueError as error:
        unknown = re.search(r"no such option (\S+)", str(error))
        if not unknown:
            raise OptionError(f"pass '{mlir_pass.name}' does not take the options '{mlir_pass.options}'") from None
        known = re.findall(r"([\w-]+)=", str(_parse_alone(mlir_pass.name)))
        hint = nearest(unknown.group(1), known)
        raise OptionError(f"pass '{mlir_pass.name}': no option '{unknown.group(1)}'{hint}") from None


def _parse_alone(text: str) -> PassManager:
    """MLIR's own parse of one pass; `any` holds every pass, whatever it is restricted to."""
    return PassManager.parse(f"{ANY}({text})", _bare_context())


@functools.cache
def _bare_context() -> ir.Context:
    return ir.Context()
