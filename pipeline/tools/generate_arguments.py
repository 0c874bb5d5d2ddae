"""The command line of pipeline-generate."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from pipeline.generation.settings import KV_CACHES
from pipeline.options import ACTIVATIONS, PRECISIONS, WEIGHTS
from pipeline.tools.command_line import DriverParser, count

_DESCRIPTION = """Goes on with a text, and prints tokens as they come; how fast they came is said on stderr. The model
is an artifact, which needs neither PyTorch nor MLIR, or a folder of a checkpoint, which is compiled first."""

_EPILOG = """the model:
  model.pipeline     what LanguageModel.save or -o wrote; the package tokenizers reads the tokenizer in it
  FOLDER             what save_pretrained of transformers wrote: config.json, weights and tokenizer.json

examples:
  pipeline-generate SmolLM2/ --max-length=1024 --weights=int8 -o smol.pipeline
  pipeline-generate smol.pipeline --prompt="The sea is" --max-new-tokens=50
  pipeline-generate smol.pipeline --prompt="The sea is" --do-sample --temperature=0.7 --top-p=0.9 --seed=3"""

#: The options that are settings of `generate`.
SETTINGS = (
    "max_new_tokens",
    "do_sample",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "typical_p",
    "repetition_penalty",
    "no_repeat_ngram_size",
    "min_new_tokens",
    "num_beams",
    "prompt_lookup_num_tokens",
)


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The options; `settings` are the names of those that are given to `generate`."""
    parser = DriverParser(
        prog="pipeline-generate",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", metavar="MODEL", help="an artifact, or a folder of a checkpoint, see below")
    parser.add_argument("--prompt", metavar="TEXT", help="the text to go on with")
    parser.add_argument("-o", dest="output", metavar="FILE", help="write the compiled model to an artifact")
    how = parser.add_argument_group("how tokens are chosen; what is left out is that of the generation config")
    how.add_argument(
        "--max-new-tokens", type=count(0), metavar="N", help="how many at most (default: while there is room)"
    )
    how.add_argument("--do-sample", action="store_true", default=None, help="draw them; else each is the likeliest")
    how.add_argument("--temperature", type=float, metavar="T", help="above 1 more random, below 1 less")
    how.add_argument("--top-k", type=count(0), metavar="N", help="draw among the N likeliest; 0 for all")
    how.add_argument("--top-p", type=float, metavar="P", help="draw among the likeliest that have P of the probability")
    how.add_argument(
        "--min-p", type=float, metavar="P", help="draw among those that are P times as likely as the likeliest"
    )
    how.add_argument(
        "--typical-p",
        type=float,
        metavar="P",
        help="draw among those as telling as expected, with P of the probability",
    )
    how.add_argument(
        "--repetition-penalty", type=float, metavar="P", help="divide scores of tokens that were there by it"
    )
    how.add_argument(
        "--no-repeat-ngram-size", type=count(0), metavar="N", help="no N tokens in a row stand twice; 0 for any"
    )
    how.add_argument("--min-new-tokens", type=count(0), metavar="N", help="no end before so many")
    how.add_argument(
        "--num-beams",
        type=count(1),
        metavar="N",
        help="keep the N best texts on the way; the best comes when it is known (a checkpoint is compiled for N)",
    )
    how.add_argument(
        "--prompt-lookup-num-tokens",
        type=count(1),
        metavar="N",
        help="guess N tokens at a time from what followed in the text before; the tokens stay the same",
    )
    how.add_argument(
        "--assistant-model", metavar="FILE", help="guess by a smaller model, an artifact; the tokens stay the same"
    )
    how.add_argument(
        "--seed", type=count(0), metavar="N", help="what --do-sample draws from (default: another each time)"
    )
    parser.add_argument("--num-threads", type=count(1), metavar="N", help="threads that share the work of a kernel")
    compiling = parser.add_argument_group("how a checkpoint is compiled")
    compiling.add_argument(
        "--max-length",
        type=count(2),
        metavar="N",
        help="tokens that the cache has room for (default: 1024, if the model can)",
    )
    compiling.add_argument(
        "--batch",
        type=count(1),
        default=1,
        metavar="N",
        help="rows that the cache has room for, of servers and beams (default: 1, or as many as beams)",
    )
    compiling.add_argument(
        "--precision", choices=PRECISIONS, default="f32", help="as in pipeline-compile (default: f32)"
    )
    compiling.add_argument("--weights", choices=WEIGHTS, default="f32", help="as in pipeline-compile (default: f32)")
    compiling.add_argument("--group", type=count(2), metavar="N", help="as in pipeline-compile")
    compiling.add_argument("--zero-points", action="store_true", help="as in pipeline-compile")
    compiling.add_argument("--activations", choices=ACTIVATIONS, default="f32", help="as in pipeline-compile")
    compiling.add_argument("--keep", action="append", default=[], metavar="PATTERN", help="as in pipeline-compile")
    compiling.add_argument(
        "--kv-cache",
        choices=KV_CACHES,
        default="model",
        help="int8 keeps keys and values as bytes (default: model, as the model computes them)",
    )
    arguments = parser.parse_args(argv)
    if arguments.prompt is None and arguments.output is None:
        parser.error("says neither --prompt, a text to go on with, nor -o, where the compiled model goes")
    if not Path(arguments.model).exists():
        parser.error(f"{arguments.model}: there is no such file or folder")
    arguments.settings = [name for name in SETTINGS if getattr(arguments, name) is not None]
    return arguments
