"""pipeline-generate: goes on with a text, token by token. For an artifact it imports neither torch nor MLIR."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipeline import generation
from pipeline.errors import ArgumentError, PipelineError
from pipeline.generation.language_model import LanguageModel
from pipeline.runtime.call.generator import manual_seed
from pipeline.tools.command_line import exit_code
from pipeline.tools.generate_arguments import parse_arguments

#: What a tokenizer gives for bytes that are not yet a whole character.
_UNFINISHED = "\ufffd"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the driver; returns the exit code, 0 or 1."""
    arguments = parse_arguments(sys.argv[1:] if argv is None else argv)
    return exit_code("pipeline-generate", lambda: _run(arguments))


def _run(arguments: argparse.Namespace) -> None:
    lm = _language_model(arguments)
    for entry in (lm.prefill, lm.decode) if arguments.num_threads is not None else ():
        entry.num_threads = arguments.num_threads
    if arguments.output is not None:
        lm.save(arguments.output)
    if arguments.prompt is None:
        return
    tokenizer = _tokenizer(lm, arguments.model)
    ids = np.array([_encoded(tokenizer, arguments.prompt)], np.int64)
    if arguments.seed is not None:
        manual_seed(arguments.seed)
    settings = {name: getattr(arguments, name) for name in arguments.settings}
    if arguments.assistant_model is not None:
        settings["assistant_model"] = generation.load(arguments.assistant_model)
    times = [time.perf_counter()]
    for piece in _pieces(tokenizer, _tokens(lm, ids, settings), times):
        sys.stdout.write(piece)
        sys.stdout.flush()
    sys.stdout.write("\n")
    print(_speed(ids.shape[1], times) + _drafts(lm), file=sys.stderr)


def _tokens(lm: LanguageModel, ids: np.ndarray, settings: dict[str, Any]) -> Iterator[np.ndarray]:
    """The tokens as they come; those of beams come at once."""
    if (settings.get("num_beams") or lm.settings.num_beams) == 1:
        return lm.stream(ids, **settings)
    return iter(lm.generate(ids, **settings)[:, lm.first_new(ids) :].T)


def _language_model(arguments: argparse.Namespace) -> LanguageModel:
    """An artifact, or a folder of a checkpoint, which is compiled."""
    if not Path(arguments.model).is_dir():
        return generation.load(arguments.model)
    from pipeline.tools.checkpoint import compile_checkpoint

    return compile_checkpoint(arguments)


def _tokenizer(lm: LanguageModel, model: str) -> Any:
    if lm.tokenizer is None:
        raise PipelineError(f"{model}: has no tokenizer.json, which --prompt needs; save it with tokenizer=")
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise PipelineError("--prompt needs the package tokenizers: pip install tokenizers") from None
    return Tokenizer.from_str(lm.tokenizer.decode())


def _encoded(tokenizer: Any, prompt: str) -> list[int]:
    ids = tokenizer.encode(prompt).ids
    if not ids:
        raise ArgumentError("--prompt: has no tokens; give some text")
    return ids


def _pieces(tokenizer: Any, tokens: Iterator[np.ndarray], times: list[float]) -> Iterator[str]:
    """The text of the tokens as far as it is whole characters; `times` takes when each token came."""
    ids: list[int] = []
    told = ""
    for (token,) in tokens:
        times.append(time.perf_counter())
        ids.append(int(token))
        text = tokenizer.decode(ids)
        if not text.endswith(_UNFINISHED) and text.startswith(told):
            yield text[len(told) :]
            told = text
    yield tokenizer.decode(ids)[len(told) :]


def _speed(length: int, times: Sequence[float]) -> str:
    """How long the prompt took, and how many tokens a second came after the first."""
    count = len(times) - 1
    if count < 1:
        return f"{length} tokens of prompt, no new one"
    first = times[1] - times[0]
    text = f"{length} tokens of prompt in {first:.3f} s ({length / first:.1f} tokens/s)"
    if count > 1:
        text += f", {count - 1} tokens after the first at {(count - 1) / (times[-1] - times[1]):.1f} tokens/s"
    return text


def _drafts(lm: LanguageModel) -> str:
    return f", {lm.accepted} of {lm.drafted} tokens of drafts taken" if lm.drafted else ""


if __name__ == "__main__":
    sys.exit(main())
