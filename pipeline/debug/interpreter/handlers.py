"""Which function interprets which op: the table that the files beside this one fill."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pipeline.mlir import ir

if TYPE_CHECKING:
    from pipeline.debug.interpreter.frame import Frame

#: Takes the frame, the op and the values of its operands; gives the values of its results.
Handler = Callable[["Frame", ir.Operation, list[Any]], list[Any]]

HANDLERS: dict[str, Handler] = {}


def interprets(*names: str) -> Callable[[Handler], Handler]:
    """Enters a function into the table under the names of ops."""

    def enter(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(names, handler))
        return handler

    return enter
