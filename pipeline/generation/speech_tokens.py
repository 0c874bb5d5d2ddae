"""What a generation config of Whisper says of how texts begin, of times, and of when a window is heard again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pipeline.errors import OptionError


@dataclass(frozen=True)
class SpeechTokens:
    """What texts of Whisper begin with and stand between.

    Attributes:
        languages: the tokens of languages, by all names that callers have for these; none of a model of English alone.
        tasks: the tokens of `transcribe` and `translate`.
        last: the token behind these that says that no times come; the next one is that of the first time. None for a
            model without times.
        forced: what stands behind the first token where no call says more, of an old config; None for the language.
        language, task: what a call has that says nothing.
        latest_start: how many steps of 0.02 seconds after a window's begin its first time is at most; None for any.
        previous: the token in front of the text before; None for none.
        positions: how many tokens the model has positions for.
        usual: what a call has that says nothing, by the names that `SpeechCall` has.
    """

    languages: Mapping[str, int]
    tasks: Mapping[str, int]
    last: int | None
    forced: Sequence[int | None]
    language: str | None
    task: str | None
    latest_start: int | None
    previous: int | None
    positions: int
    usual: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """What the class makes of it, by name."""
        return asdict(self)

    def language_of(self, name: Any) -> int:
        """The token of a language.

        Raises:
            OptionError: the model has none for it.
        """
        found = self.languages.get(str(name).lower())
        if found is None:
            known = ", ".join(sorted(language for language in self.languages if language.isalpha()))
            raise OptionError(f"language: expected one of {known or 'none: the model has one alone'}, got {name!r}")
        return found

    def task_of(self, name: str) -> int:
        """The token of a task.

        Raises:
            OptionError: the model has none for it.
        """
        if name not in self.tasks:
            known = ", ".join(self.tasks)
            raise OptionError(f"task: expected one of {known or 'none: the model has one alone'}, got {name!r}")
        return self.tasks[name]
