"""The texts of a compilation's stages, of which the longest is made when somebody asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.mlir import ir

#: Sees the name and the MLIR text of a stage.
Observer = Callable[[str, str], None]


class KeptStages:
    """Keeps the text of every stage, and tells the observer. Called with a stage's name and the module or text.

    The stage `late` is for observers alone: else its text is made when it is asked for, see `StageTexts`.
    """

    def __init__(self, observer: Observer | None, late: str | None):
        self.texts: dict[str, str] = {}
        self._observer, self._late = observer, late

    def __call__(self, stage: str, code: ir.Module | str) -> None:
        """Is told of a stage."""
        if stage == self._late and self._observer is None:
            return
        self.texts[stage] = code if isinstance(code, str) else _text(code)
        if self._observer is not None:
            self._observer(stage, self.texts[stage])


class StageTexts(Mapping[str, str]):
    """Texts by stage, in the order of the stages; that of `late` comes from `make` if there is none."""

    def __init__(self, texts: Mapping[str, str], late: str | None, make: Callable[[], str]):
        self._texts, self._late, self._make = dict(texts), late, make

    def __getitem__(self, stage: str) -> str:
        if stage not in self._texts and stage == self._late:
            self._texts[stage] = self._make()
        return self._texts[stage]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._texts, *([self._late] if self._late else [])]))

    def __len__(self) -> int:
        return len(list(iter(self)))


def _text(module: ir.Module) -> str:
    from pipeline.mlir import text

    return text(module.operation, elements=None)
