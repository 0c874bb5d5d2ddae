"""How drivers print IR, and the instrumentation that prints it between passes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.errors import OptionError
from pipeline.mlir import ir, symbol_name
from pipeline.passmanager.pass_runner import Instrumentation, PipelineStep


@dataclass(frozen=True)
class AsmStyle:
    """How IR is printed.

    Attributes:
        max_elements: constants with more elements are elided; None prints all.
        max_resource: resource strings with more characters are elided; None prints all.
        debug_info: print locations.
        pretty_debug_info: print them in a form for people, which cannot be parsed.
        generic: print the generic form of ops.
        local_scope: print attributes and types in place instead of as aliases.
        name: makes the file's name of MLIR's `-` in locations.
    """

    max_elements: int | None = None
    max_resource: int | None = None
    debug_info: bool = False
    pretty_debug_info: bool = False
    generic: bool = False
    local_scope: bool = False
    name: Callable[[str], str] = str

    def text(self, op: ir.Operation) -> str:
        """`op` as text that ends in one newline."""
        locations = self.debug_info or self.pretty_debug_info
        text = op.get_asm(
            large_elements_limit=self.max_elements,
            large_resource_limit=self.max_resource,
            enable_debug_info=locations,
            pretty_debug_info=self.pretty_debug_info,
            print_generic_op_form=self.generic,
            use_local_scope=self.local_scope,
        )
        return (self.name(text) if locations else text).rstrip("\n") + "\n"


@dataclass(frozen=True)
class When:
    """Around which passes IR is printed: those named, or all."""

    before: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()
    before_all: bool = False
    after_all: bool = False
    only_changes: bool = False
    failures: bool = False

    def __bool__(self) -> bool:
        return bool(self.before or self.after or self.before_all or self.after_all or self.failures)


@dataclass
class IRPrinter(Instrumentation):
    """Prints the op that a pass runs on to stderr, or, if `tree` is given, to files in a tree of ops there."""

    when: When
    style: AsmStyle
    tree: Path | None = None
    _dumps: int = field(default=0, init=False)
    _before: str = field(default="", init=False)

    def before(self, step: PipelineStep, op: ir.Operation) -> None:
        """Prints if asked to, and remembers the IR where only changes are printed."""
        if self.when.only_changes:
            self._before = self.style.text(op)
        if self.when.before_all or step.pass_.name in self.when.before:
            self._print("Before", step, op)

    def after(self, step: PipelineStep, op: ir.Operation) -> None:
        """Prints if asked to and, where only changes are printed, the pass made one."""
        if not (self.when.after_all or step.pass_.name in self.when.after):
            return
        if not self.when.only_changes or self.style.text(op) != self._before:
            self._print("After", step, op)

    def failed(self, step: PipelineStep, op: ir.Operation) -> None:
        """Prints if asked to."""
        if self.when.failures:
            self._print("Failed", step, op)

    def _print(self, what: str, step: PipelineStep, op: ir.Operation) -> None:
        symbol = f": @{_symbol(op)}" if _symbol(op) else ""
        text = f"// -----// IR Dump {what} {step.pass_.name} ('{op.name}' operation{symbol}) //----- //\n"
        text += self.style.text(op)
        if self.tree is None:
            sys.stderr.write(text + "\n")
            return
        suffix = "" if what == "After" else f".{what.lower()}"
        path = _folder(self.tree, op) / f"{self._dumps}_{step.pass_.name}{suffix}.mlir"
        self._dumps += 1
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise OptionError(f"{path}: {error.strerror}") from None


def _folder(tree: Path, op: ir.Operation) -> Path:
    """The folder of `op`: one level for each op that it is in, named after op and symbol."""
    folder = _folder(tree, op.parent.operation) if op.parent else tree
    return folder / f"{op.name.replace('.', '_')}_{_symbol(op) or 'no-symbol-name'}".replace("/", "_")


def _symbol(op: ir.Operation) -> str:
    return symbol_name(op) if "sym_name" in op.attributes else ""
