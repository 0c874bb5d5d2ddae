"""Code that torch writes for graphs with overloads that are called like a keyword, of which there is `random_.from`."""

from __future__ import annotations

import contextlib
import keyword
from collections.abc import Iterator
from typing import Any

from torch.fx import graph as fx_graph


@contextlib.contextmanager
def written_as_attributes() -> Iterator[None]:
    """aten.random_.from → getattr(aten.random_, "from") in the code that torch writes in the `with` block.

    One thread at a time.
    """
    name_of = fx_graph._get_qualified_name

    def qualified(function: Any) -> str:
        owner, _, last = (name := name_of(function)).rpartition(".")
        return f'getattr({owner}, "{last}")' if keyword.iskeyword(last) else name

    fx_graph._get_qualified_name = qualified
    try:
        yield
    finally:
        fx_graph._get_qualified_name = name_of
