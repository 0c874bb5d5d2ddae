"""What torch says where it cannot capture a model, as one paragraph: what is wrong, where in the model, what to do."""

from __future__ import annotations

import re
import traceback
from pathlib import Path

import torch

#: How many characters of torch's text are told. Messages with a graph in them have thousands of lines.
LONGEST = 1500

#: Where files lie that are not the model's; `<` begins the names of generated code.
_NOT_THE_MODEL = (str(Path(torch.__file__).parent), str(Path(__file__).parents[1]), "<")

#: What torch refuses in the bodies of branches and loops, in eager, too; by a part of its message.
_REGION_ERRORS = {
    "input mutation during higher order op": "the body of a scan or a map writes in place to what it is given or "
    "captures; carry that or return it",
    "aliasing during higher order op": "a branch or the body of a loop has a tensor under two names: it captures a "
    "tensor and a view of it, or returns what it is given; take the view inside, return a clone",
    "sorted order of strides of the two branches": "the branches of a torch.cond return tensors that lie differently "
    "in memory, such as a matrix and an inverse, which torch lays out by columns; return them with .contiguous()",
}

_DATA_DEPENDENT = ("data-dependent", "DataDependent", "dynamic control flow", "GuardOnDataDependent")

#: Where transformers has the layers of caches that torch.export does not know.
_CACHES = "Unsupported input type <class 'transformers.cache_utils."

#: How torch begins what it says about the ranges of sizes; which guard, and which range, is in the lines after it.
_CONSTRAINTS = ("Constraints violated", "specialized")


def explain(error: BaseException) -> str:
    """torch's message, the line of the model's source that it is about, and what to do."""
    message = str(error)
    text, place = _told(error), _place(error)
    for part, meaning in _REGION_ERRORS.items():
        if part in message:
            text = meaning
    if place:
        text += f" (at {place})"
    if any(word in message or word in type(error).__name__ for word in _DATA_DEPENDENT):
        text += (
            ". The model branches on the values of a tensor: write the branch with torch.cond or torch.while_loop, "
            'or compile with capture="script"'
        )
    elif _CACHES in message:
        text += ". Caches that grow are supported, with windows or without; call it with use_cache=False"
    elif _is_about_sizes(message):
        text += ". With torch.export.Dim.AUTO in dynamic_shapes torch finds the range of a size, or its number, itself"
    return text


def cause(error: BaseException) -> BaseException | None:
    """What an error is raised from: `error`, but not if it would bring a whole graph to the terminal."""
    return error if len(str(error)) <= 2 * LONGEST else None


def first_line(error: BaseException) -> str:
    """`Type: the first line of the message`, cut to `LONGEST`."""
    lines = _lines(error)
    return _cut(f"{type(error).__name__}: {lines[0]}") if lines else type(error).__name__


#: What torch adds to each message of torch.export.
_ADDED = ("The error above occurred", 'For more information, run with TORCH_LOGS="+dynamic".')


def _told(error: BaseException) -> str:
    """The first line; of a message about sizes all lines, in one."""
    if not _is_about_sizes(str(error)):
        return first_line(error)
    lines = [line.removeprefix("- ").replace(_ADDED[1], "").strip(" .") for line in _lines(error)]
    return _cut(f"{type(error).__name__}: {'; '.join(line for line in lines if not line.startswith(_ADDED[0]))}")


def _is_about_sizes(message: str) -> bool:
    lines = message.strip().splitlines()
    return bool(lines) and any(word in lines[0] for word in _CONSTRAINTS) and "Dim" not in lines[0]


def _lines(error: BaseException) -> list[str]:
    return [line.strip() for line in str(error).splitlines() if line.strip()]


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


def _place(error: BaseException) -> str | None:
    """`file:line` of the innermost line of the model's source that torch's message, or else the traceback, names."""
    named = re.findall(r'File "([^"]+)", line (\d+)', str(error))
    passed = [(frame.filename, str(frame.lineno)) for frame in traceback.extract_tb(error.__traceback__)]
    for frames in (named, passed):
        own = [frame for frame in frames if not frame[0].startswith(_NOT_THE_MODEL)]
        if own:
            return ":".join(own[-1])
    return None
