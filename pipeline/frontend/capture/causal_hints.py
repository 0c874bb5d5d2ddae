"""nn.TransformerEncoder and nn.TransformerDecoder ask whether a mask that they are given is the causal one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from torch.nn.modules import transformer


@contextlib.contextmanager
def by_the_caller_alone() -> Iterator[None]:
    """Has `is_causal` say what the caller says, False by default, instead of comparing the mask's values.

    It is a hint that lets attention compute the causal mask rather than read the one it is given: the mask is read
    where it is False, with the same result, and a capture need not branch on values that it does not have.
    """
    original = transformer._detect_is_causal_mask

    def hint(mask: Any, is_causal: bool | None = None, size: int | None = None) -> bool:
        return bool(is_causal)

    transformer._detect_is_causal_mask = hint
    try:
        yield
    finally:
        transformer._detect_is_causal_mask = original
