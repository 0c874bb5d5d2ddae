"""What all entries of a language model share when they are compiled: options, weights, the room of the cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch import nn

from pipeline import compiler, gc_pause, interrupts, progress
from pipeline.errors import CaptureError, OptionError
from pipeline.frontend.generation.entry_source import EntrySource
from pipeline.generation.prompt import SHORTEST
from pipeline.generation.settings import KV_CACHES
from pipeline.options import Options
from pipeline.runtime.call.symbolic_sizes import evaluate
from pipeline.runtime.executable import Executable
from pipeline.runtime.weights.preparation import Preparation

#: How many slots are a whole number of the widest vectors.
_ALIGNED_SLOTS = 16

#: So many lengths tell whether there is one that is not taken: blocks are shorter.
_MANY = 600

#: What configs call how many positions there are.
_POSITIONS = ("max_position_embeddings",)


def is_quantized(kv_cache: str) -> bool:
    """Whether a cache is one of bytes; raises `OptionError` where there is no such cache."""
    if kv_cache not in KV_CACHES:
        raise OptionError(f"kv_cache: expected one of {', '.join(KV_CACHES)}, got {kv_cache!r}")
    return kv_cache == "int8"


def aligned_slots(model: nn.Module, max_length: int, attributes: Sequence[str] = _POSITIONS) -> int:
    """How many tokens the cache has room for: no more than the model has positions."""
    aligned = -(-max_length // _ALIGNED_SLOTS) * _ALIGNED_SLOTS
    positions = positions_of(model, attributes)
    return aligned if positions is None or aligned <= positions else max_length


def positions_of(model: nn.Module, attributes: Sequence[str] = _POSITIONS) -> int | None:
    """How many positions a model has, by the first of the attributes that its config has; None for any number."""
    config = model.config.get_text_config(decoder=True)
    return next((getattr(config, name) for name in attributes if hasattr(config, name)), None)


def options_of_entries(options: dict[str, Any], model: nn.Module) -> Options:
    """The options of a compilation, with names of the model's weights as the entries call them."""
    chosen = Options.create(options)
    chosen = compiler.with_kept_weights(chosen, dict(model.named_parameters(remove_duplicate=False)))
    return replace(chosen, keep=tuple(f"model.{pattern}" for pattern in chosen.keep))


def compiled_entry(
    entry: nn.Module,
    args: tuple[Any, ...],
    dynamic_shapes: Any,
    options: Options,
    preparation: Preparation,
    missed: str = "",
) -> Executable:
    """An entry as an executable; those that share a preparation prepare weights once.

    Args:
        missed: what a remark says about it, if anything.
    """
    with gc_pause.left(), interrupts.kept(), progress.reported(options.verbose):
        source = EntrySource(entry, args, dynamic_shapes, options, preparation, missed)
        return compiler.compile_source(source, options, compiler.target_for(options))


def of_any_length(entry: Executable) -> Executable:
    """The executable of a prompt or of a source of tokens.

    Raises:
        CaptureError: it does not take all lengths that there is room for, as models in blocks do not.
    """
    ranges = {symbol: (low, high) for symbol, low, high in entry.signature.ranges}
    if not ranges:
        return entry
    low, high = max(SHORTEST, *(low for low, _ in ranges.values())), min(high for _, high in ranges.values())
    for guard in entry.signature.guards:
        for length in {*range(low, min(high, _MANY) + 1), high}:
            if not evaluate(guard.condition, dict.fromkeys(ranges, length)):
                raise CaptureError(
                    f"{entry.name}: {guard.line} was captured for lengths of which {length} is none, {guard.condition}"
                )
    return entry
