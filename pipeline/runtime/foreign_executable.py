"""Executables for CPUs that this machine does not have: to be looked at, saved and linked, not to be called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from pipeline.errors import PipelineError
from pipeline.runtime.executable import Executable
from pipeline.runtime.native.cpu_features import why_foreign
from pipeline.runtime.native.externals import Externals
from pipeline.runtime.weights.weight_binding import live_weights


class ForeignExecutable(Executable):
    """A compiled model whose code this machine cannot run."""

    def load_code(self, functions: Mapping[str, Callable[..., Any]], num_threads: int | None) -> None:
        """Loads nothing."""
        self._externals = Externals((), {})
        self._threads = self._record = None

    def start(self) -> None:
        """Looks at the weights alone: what depends on them is computed where the code runs."""
        live_weights(self.signature, self._source)

    def refresh(self) -> None:
        """Looks at the weights as they are now."""
        self.start()

    def __call__(self, *args: Any, out: Any = None, **kwargs: Any) -> NoReturn:
        """Raises `PipelineError`; says why this machine cannot run the code."""
        self._refuse("this executable")

    def profile(self, *args: Any, repeats: int = 10, **kwargs: Any) -> NoReturn:
        """Raises `PipelineError`; says why this machine cannot run the code."""
        self._refuse("profile: this executable")

    @property
    def has_profile(self) -> bool:
        """It cannot be measured here."""
        return False

    @property
    def prepared(self) -> NoReturn:
        """Raises `PipelineError`: nothing is prepared where the code cannot run."""
        self._refuse("prepared: this executable")

    def _prepacked(self) -> NoReturn:
        self._refuse("prepacked: what depends on weights cannot be computed here: the code")

    def _refuse(self, what: str) -> NoReturn:
        code = self._code
        raise PipelineError(f"{what} {why_foreign(code.machine, code.cpu, code.required)}")
