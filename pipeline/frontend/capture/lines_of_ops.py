"""The lines of `forward` that called an op, found without the hundred frames around them.

For each node torch writes the whole stack down, as text, and keeps the few frames that are of a `forward` or of a
function that was compiled as itself. Found first and written once for all nodes of a line they take a sixth less time
where sizes are symbolic, as there each op with a size is a node, too.
"""

from __future__ import annotations

import functools
import sys
import traceback
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from torch.fx import Node, proxy
from torch.fx.experimental.symbolic_shapes import uninteresting_files


def with_lines_of_users() -> Callable[..., Node]:
    """What stands for `TracerBase.create_node` in a trace: nodes get the same `stack_trace`."""
    original, text = proxy.TracerBase.create_node, functools.cache(_text)

    def create_node(tracer: proxy.TracerBase, *args: Any, **kwargs: Any) -> Node:
        if not (tracer.record_stack_traces and tracer._record_forward_stack_traces_only):
            return original(tracer, *args, **kwargs)
        tracer.record_stack_traces = False
        try:
            node = original(tracer, *args, **kwargs)
        finally:
            tracer.record_stack_traces = True
        if not node.stack_trace and (lines := text(_frames_of_users(sys._getframe(1)))):
            node.stack_trace = lines
        return node

    return create_node


def _frames_of_users(frame: FrameType | None) -> tuple[tuple[CodeType, int], ...]:
    """What torch keeps of a stack, from the outside in."""
    anchors, others = proxy._STACK_TRACE_ANCHORS, uninteresting_files()
    found = []
    while frame is not None:
        code = frame.f_code
        file, name = code.co_filename, code.co_name
        if (name == "forward" or (file, name) in anchors) and file not in others:
            found.append((code, frame.f_lineno))
        frame = frame.f_back
    return tuple(reversed(found))


def _text(frames: tuple[tuple[CodeType, int], ...]) -> str:
    lines = [traceback.FrameSummary(code.co_filename, line, code.co_name) for code, line in frames]
    return "".join(traceback.StackSummary.from_list(lines).format()).strip()
