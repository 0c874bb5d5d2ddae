"""The command line of pipeline-opt: options of the driver, and a flag for each pass.

Options are spelled as LLVM's tools spell them: with one dash or two, `--flag` or `--flag=false`.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence

from pipeline.tools.command_line import DriverParser
from pipeline.tools.remark_output import FORMATS

_TRUTH = {"true": True, "1": True, "false": False, "0": False}
_DESCRIPTION = """Reads MLIR, runs passes of ours, of plugins and of MLIR on it, and prints what comes out."""
_EPILOG = """passes:
  Each pass is a flag too, with its options as value; they run in the order given:
    pipeline-opt in.mlir --canonicalize --my-pass="size=4 deep"
  --list-passes shows them all. docs/writing-a-pass.md shows how to write one."""


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The options; `passes` holds the pass flags in order, as `(name, options)`, their names not yet checked."""
    parser = _parser()
    words, passes = _separate(argv, parser)
    arguments = parser.parse_args(words)
    arguments.passes = passes
    arguments.known_options = sorted(name.removeprefix("--") for name in _options(parser) if name.startswith("--"))
    sources = ["--pass-pipeline"] if arguments.pass_pipeline is not None else []
    sources += ["--run-reproducer"] if arguments.run_reproducer else []
    sources += [f"--{name}" for name, _ in passes[:1]]
    if len(sources) > 1:
        parser.error(f"'{sources[-1]}' cannot be used together with '{sources[0]}'")
    if arguments.emit_bytecode and arguments.split_input_file:
        parser.error("'--emit-bytecode' cannot be used together with '--split-input-file': it is of one module")
    if arguments.emit_bytecode and arguments.output == "-" and sys.stdout.isatty():
        parser.error("--emit-bytecode is binary: say with -o which file it goes to")
    printing = [name for name in vars(arguments) if name.startswith("mlir_print_ir_") and getattr(arguments, name)]
    if printing and not arguments.mlir_disable_threading:
        option = f"--{printing[0].replace('_', '-')}"
        parser.error(f"'{option}' cannot be used together with '--mlir-disable-threading=false'")
    return arguments


def _separate(argv: Sequence[str], parser: DriverParser) -> tuple[list[str], list[tuple[str, str]]]:
    """The words for `parser`, in the spelling that argparse wants, and those that it does not know, as passes."""
    options = _options(parser)
    words: list[str] = []
    passes: list[tuple[str, str]] = []
    takes_value = False
    for word in argv:
        dashes = re.match(r"-{1,2}(?=[A-Za-z][\w-])", word)
        if not dashes or takes_value:
            words.append(word)
            takes_value = False
            continue
        name, equals, value = word[dashes.end() :].partition("=")
        action = options.get(f"--{name}")
        if action is None:
            passes.append((name, value))
        elif action.type is _boolean and not equals:
            words.append(f"--{name}=true")
        else:
            words.append(f"--{name}{equals}{value}")
            takes_value = not equals and action.nargs != 0
    return words, passes


def _options(parser: DriverParser) -> dict[str, argparse.Action]:
    return {name: action for action in parser._actions for name in action.option_strings}


def _boolean(text: str) -> bool:
    if text.lower() not in _TRUTH:
        raise argparse.ArgumentTypeError(f"takes true or false, not '{text}'")
    return _TRUTH[text.lower()]


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _parser() -> DriverParser:
    parser = DriverParser(
        prog="pipeline-opt",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "input", nargs="?", default="-", help="MLIR, text or bytecode; - for stdin, which is the default"
    )
    parser.add_argument("-o", dest="output", default="-", metavar="FILE", help="where to print; - for stdout")
    _flag(parser, "--emit-bytecode", "write MLIR's bytecode instead of text")
    _add_pipeline_options(parser.add_argument_group("what runs"))
    _add_input_options(parser.add_argument_group("how input and diagnostics are treated"))
    _add_dump_options(parser.add_argument_group("looking at passes"))
    _add_style_options(parser.add_argument_group("how IR is printed"))
    return parser


def _flag(group: argparse._ActionsContainer, name: str, help_: str, default: bool = False) -> None:
    group.add_argument(name, type=_boolean, nargs="?", const=True, default=default, metavar="BOOL", help=help_)


def _add_pipeline_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--pass-pipeline", metavar="TEXT", help="passes, e.g. 'builtin.module(func.func(cse),my-pass{a=1})'"
    )
    group.add_argument(
        "--load-plugin", action="append", default=[], metavar="FILE", help="Python file with passes, dialects"
    )
    _flag(group, "--dump-pass-pipeline", "print on stderr the pipeline that runs, in full")
    _flag(
        group,
        "--mlir-disable-threading",
        "run passes of MLIR on one thread, so that what they say comes in order (default: true)",
        default=True,
    )
    _flag(group, "--verify-each", "verify the IR after each pass (default: true)", default=True)
    _flag(group, "--list-passes", "list all passes with their options, and stop")
    _flag(group, "--show-dialects", "list all dialects, and stop")
    group.add_argument(
        "--print-fusion-rules", metavar="TARGET", help="print a target's table of fusion rules as YAML, and stop"
    )
    _flag(group, "--run-reproducer", "run the pipeline that the input carries")
    group.add_argument("--mlir-generate-reproducer", metavar="FILE", help="write a reproducer before the passes run")
    group.add_argument(
        "--mlir-pass-pipeline-crash-reproducer", metavar="FILE", help="write a reproducer to FILE if a pass fails"
    )


def _add_input_options(group: argparse._ArgumentGroup) -> None:
    _flag(group, "--split-input-file", "treat the parts between lines '// -----' as files of their own")
    _flag(group, "--verify-diagnostics", "check diagnostics against 'expected-error' comments and the like")
    _flag(group, "--allow-unregistered-dialect", "accept ops of dialects that nobody defined")


def _add_dump_options(group: argparse._ArgumentGroup) -> None:
    for when in ("before", "after"):
        group.add_argument(
            f"--mlir-print-ir-{when}",
            type=_names,
            default=[],
            metavar="PASSES",
            help=f"print the IR {when} these passes",
        )
        _flag(group, f"--mlir-print-ir-{when}-all", f"print the IR {when} each pass")
    _flag(group, "--mlir-print-ir-after-change", "print the IR after a pass only if it changed")
    _flag(group, "--mlir-print-ir-after-failure", "print the IR after a pass that failed")
    group.add_argument("--mlir-print-ir-tree-dir", metavar="DIR", help="print it to files in a tree of ops there")
    _flag(group, "--mlir-timing", "print how long each pass took")
    _flag(group, "--mlir-pass-statistics", "print what each pass changed")
    group.add_argument(
        "--remarks-filter",
        metavar="REGEX",
        help="print the remarks of such passes, kinds or reasons, or 'pass/kind/reason', e.g. 'fuse-.*/missed/.*'",
    )
    group.add_argument("--remark-format", choices=FORMATS, default="text", help="how remarks are printed")
    group.add_argument("--remarks-output-file", default=None, metavar="FILE", help="where to; stderr by default")


def _add_style_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--mlir-elide-elementsattrs-if-larger", type=int, metavar="N", help="elide constants of more than N elements"
    )
    group.add_argument(
        "--mlir-elide-resource-strings-if-larger",
        type=int,
        metavar="N",
        help="elide resources of more than N characters",
    )
    _flag(group, "--mlir-print-debuginfo", "print locations")
    _flag(group, "--mlir-pretty-debuginfo", "print locations for people")
    _flag(group, "--mlir-print-op-generic", "print the generic form of ops")
    _flag(group, "--mlir-print-local-scope", "print attributes and types in place, without aliases")
