"""One context for the small programs that a thread compiles one after the other, and its pass managers.

Making a context, and having MLIR's passes collect their patterns in it, is a sixth of the time that a small program
takes to compile. A context keeps the attributes, types and locations of all that was ever in it, so large programs have
contexts of their own, and the shared one is replaced by a new one now and then. It has no threads, which a forked child
would miss.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from pipeline.mlir.bindings import PassManager, context, ir
from pipeline.plugins import Plugin, plugins

#: So large a program, in ops or in lines of text, is small.
_SMALL = 400

#: So much is in a context before it is replaced: what it has kept of that is some megabytes.
_MOST = 20_000

#: Of more pass managers, all are forgotten.
_MOST_MANAGERS = 200


@dataclass
class _SharedContext:
    """A context that programs share.

    Attributes:
        plugins: those whose dialects it has.
        managers: by pipeline, and by whether the IR is verified after each pass.
        size: of all programs that have been in it.
    """

    context: ir.Context
    plugins: list[Plugin]
    managers: dict[tuple[str, bool], PassManager] = field(default_factory=dict)
    size: int = 0

    def takes(self, size: int) -> bool:
        """Whether another program may be made in it."""
        return self.size + size <= _MOST and self.plugins == plugins()


class _OfThread(threading.local):
    shared: _SharedContext | None = None


_of_thread = _OfThread()
_may_share: contextvars.ContextVar[bool] = contextvars.ContextVar("pipeline_may_share_context", default=False)


@contextlib.contextmanager
def shared_context(allowed: bool = True) -> Iterator[None]:
    """Has small programs that are made in the `with` block share a context: nothing of them may outlive the block.

    What fails may leave a context in any state: it is not used again. With `allowed=False`, a block inside of such a
    one, programs have contexts of their own.
    """
    token = _may_share.set(allowed)
    try:
        yield
    except BaseException:  # Ctrl-C, too, which may come in the middle of a pass
        _of_thread.shared = None
        raise
    finally:
        _may_share.reset(token)


def context_for(size: int) -> ir.Context:
    """The shared context, where that is allowed, for a program of `size` ops or lines; for a large one a new one."""
    if size > _SMALL or not _may_share.get():
        return context()
    shared = _of_thread.shared
    if shared is None or not shared.takes(size):
        shared = _of_thread.shared = _SharedContext(context(), plugins())
        shared.context.enable_multithreading(False)
    shared.size += size
    return shared.context


def pass_manager(pipeline: str, ctx: ir.Context, verified: bool) -> PassManager:
    """MLIR's passes by the text of their pipeline; in the shared context those that ran before."""
    shared = _of_thread.shared
    known = shared.managers if shared is not None and shared.context is ctx else {}
    manager = known.get((pipeline, verified))
    if manager is None:
        manager = PassManager.parse(pipeline, ctx)
        manager.enable_verifier(verified)
        if len(known) >= _MOST_MANAGERS:
            known.clear()
        known[pipeline, verified] = manager
    return manager


@contextlib.contextmanager
def single_threaded(ctx: ir.Context) -> Iterator[None]:
    """Has a context go without threads in the `with` block: a child has none but the one that forked."""
    if _of_thread.shared is not None and _of_thread.shared.context is ctx:
        yield
        return
    ctx.enable_multithreading(False)
    try:
        yield
    finally:
        ctx.enable_multithreading(True)
