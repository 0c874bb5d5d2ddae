"""Functions that callers give to say what comes next, which see tokens and scores in the library of their prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np

from pipeline.errors import ArgumentError, OptionError
from pipeline.runtime.call.array_libraries import as_numpy, converted, library_of

#: Scores as they are to be, f32[rows, vocabulary], of tokens so far, int64[rows, count], and scores.
Processor: TypeAlias = Callable[[np.ndarray, np.ndarray], np.ndarray]

#: Whether rows are to end, bool[rows], of tokens so far, int64[rows, count].
Criterion: TypeAlias = Callable[[np.ndarray], np.ndarray]

#: The tokens that may come next in a row, by its prompt's number and its tokens so far, int64[count].
Allowed: TypeAlias = Callable[[int, np.ndarray], Iterable[int]]


def processors(given: Any, library: Any) -> tuple[Processor, ...]:
    """A function of a library's tensors, or several, as transformers' LogitsProcessorList, as functions of arrays."""
    return tuple(_processor(function, library) for function in _functions("logits_processor", given))


def criteria(given: Any, library: Any) -> tuple[Criterion, ...]:
    """Likewise of functions such as those of transformers' StoppingCriteriaList, which are given None for scores."""
    return tuple(_criterion(function, library) for function in _functions("stopping_criteria", given))


def allowed(given: Any, library: Any) -> Allowed:
    """Likewise of a function as transformers' `prefix_allowed_tokens_fn`."""
    (function,) = _functions("prefix_allowed_tokens_fn", given)
    return lambda prompt, tokens: function(prompt, _given(tokens, library))


def stop_strings(given: Any, tokenizer: Any) -> Criterion:
    """Whether rows end with one of some strings, as transformers' StopStringCriteria has it.

    Raises:
        OptionError: they are no strings, there is no tokenizer of transformers', or transformers is not installed.
    """
    strings = [given] if isinstance(given, str) else given
    if not isinstance(strings, (list, tuple)) or not strings or not all(isinstance(found, str) for found in strings):
        raise OptionError(f"stop_strings: expected strings, got {given!r}")
    if not hasattr(tokenizer, "get_vocab"):
        raise OptionError(f"stop_strings: need tokenizer=, the model's tokenizer of transformers, got {tokenizer!r}")
    try:
        import torch
        from transformers import StopStringCriteria
    except ImportError as error:
        raise OptionError(f"stop_strings: {error}: pip install torch transformers") from None
    found = StopStringCriteria(tokenizer, list(strings))
    return lambda before: as_numpy(found(torch.from_numpy(np.array(before)), None))


def only_allowed(scores: np.ndarray, before: np.ndarray, function: Allowed, beams: int) -> np.ndarray:
    """Scores, -inf for tokens that a function does not allow; each prompt has `beams` rows."""
    changed = np.full_like(scores, -np.inf)
    for row, tokens in enumerate(before):
        found = [int(token) for token in function(row // beams, tokens)]
        if not found or not all(0 <= token < scores.shape[1] for token in found):
            last = scores.shape[1] - 1
            raise ArgumentError(
                f"prefix_allowed_tokens_fn: expected some tokens from 0 to {last} for row {row}, got {found}"
            )
        changed[row, found] = scores[row, found]
    return changed


def _functions(name: str, given: Any) -> tuple[Any, ...]:
    found = tuple(given) if isinstance(given, Iterable) else (given,)
    if not all(map(callable, found)):
        raise OptionError(f"{name}: expected functions, got {given!r}")
    return found


def _processor(function: Any, library: Any) -> Processor:
    def processed(before: np.ndarray, scores: np.ndarray) -> np.ndarray:
        found = _taken(function(_given(before, library), _given(scores, library)))
        if found.shape != scores.shape:
            raise ArgumentError(
                f"logits_processor: expected scores {list(scores.shape)} of {function!r}, got {list(found.shape)}"
            )
        return found.astype(np.float32)

    return processed


def _criterion(function: Any, library: Any) -> Criterion:
    def ends(before: np.ndarray) -> np.ndarray:
        found = _taken(function(_given(before, library), None))
        if found.shape not in ((), before.shape[:1]):
            raise ArgumentError(
                f"stopping_criteria: expected bool[{len(before)}] of {function!r}, got {list(found.shape)}"
            )
        return np.broadcast_to(found.astype(bool), before.shape[:1])

    return ends


def _given(array: np.ndarray, library: Any) -> Any:
    """A copy, which the function may write to."""
    copy = np.array(array)
    return copy if library is None else converted(copy, library)


def _taken(value: Any) -> np.ndarray:
    return np.asarray(value) if library_of(value) is None else as_numpy(value)
