"""pipeline-compile: a model to an artifact, or to any of the forms that it takes on the way there.

Nothing here imports torch; a model that is a Python file or one of torch's does.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from pipeline import timing
from pipeline.errors import PipelineError
from pipeline.installation import require_compiler
from pipeline.remarks import Remark, collect
from pipeline.runtime.executable import Executable
from pipeline.runtime.interface.atomic_files import replacing
from pipeline.tools import remark_output
from pipeline.tools.c_interface.program import program_files
from pipeline.tools.command_line import exit_code
from pipeline.tools.compile_arguments import BINARY, EMIT, LINKED, parse_arguments
from pipeline.tools.explain import explanation
from pipeline.tools.model_file import load_model
from pipeline.tools.quiet import quietly

if TYPE_CHECKING:
    from rich.status import Status


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the driver; returns the exit code, 0 or 1."""
    arguments = parse_arguments(sys.argv[1:] if argv is None else argv)
    return exit_code("pipeline-compile", lambda: _run(arguments))


def _run(arguments: argparse.Namespace) -> None:
    require_compiler()
    _check_places(arguments)
    watcher = _Watcher(arguments)
    with collect() as remarks:
        try:
            with watcher.status, timing.collect() as times:
                _compile(arguments, watcher)
        finally:
            _print_remarks(arguments, remarks)
            if arguments.timing:
                from pipeline.tools.timing_report import stage_report  # it loads MLIR

                sys.stderr.write(stage_report(times))


def _compile(arguments: argparse.Namespace, watcher: _Watcher) -> None:
    """Compiles as far as it takes to write what is asked for, and writes it."""
    from pipeline.compiler import compile

    if arguments.load_plugin:
        from pipeline.passmanager import registry

        for path in arguments.load_plugin:
            registry.load_plugin(path)
    with timing.stage("read the model"):
        model = load_model(arguments.model, arguments.input)
    watcher.note("reading the model")
    try:
        executable = quietly(
            compile,
            model.model,
            model.args,
            model.kwargs,
            dynamic_shapes=model.dynamic_shapes,
            observer=watcher,
            assembly=arguments.emit == "asm" or arguments.dump_dir is not None,
            linked=arguments.emit in LINKED,
            target=arguments.target,
            cpu=arguments.cpu,
            capture=arguments.capture,
            disable=arguments.disable,
            passes=arguments.passes,
            cache=arguments.cache,
            profile=arguments.profile,
            num_threads=arguments.num_threads,
            fusion_rules=arguments.fusion_rules,
            precision=arguments.precision,
            weights=arguments.weights,
            group=arguments.group,
            zero_points=arguments.zero_points,
            activations=arguments.activations,
            keep=arguments.keep,
            winograd=arguments.winograd,
            tune=arguments.tune,
            fallback="error",  # artifacts have no torch that could run ops
        )
    except _Reached as reached:
        _write(arguments.output, reached.text.encode())
        return
    if arguments.print_pipeline:
        sys.stderr.write(f"{executable.passes}\n")
    if arguments.emit not in BINARY:
        _write(arguments.output, executable.ir(arguments.emit).encode())
        return
    watcher.note("machine code")
    if arguments.explain:
        sys.stderr.write(explanation(executable.kernels, executable.remarks))
    if arguments.report is not None:
        watcher.note("the executable")
        quietly(executable.report, arguments.report)
    with timing.stage("write the outcome"):
        if arguments.emit in LINKED:
            _write_linked(arguments, executable)
        elif arguments.emit == "cubin":
            _write(arguments.output, executable.code.machine_code())
        elif arguments.emit == "spirv":
            _write_folder(Path(arguments.output), executable.code.files(".spv"))
        else:
            executable.save(arguments.output, prepacked=arguments.prepacked)


def _write_linked(arguments: argparse.Namespace, executable: Executable) -> None:
    """Writes an object file or a shared object, the C header beside it, and the weights, if they are not inside."""
    path = Path(arguments.output)
    code, signature, weights = executable.contents(prepacked=arguments.prepacked)
    files = program_files(
        path,
        code,
        signature,
        weights,
        executable.name,
        is_shared=arguments.emit == "so",
        is_beside=arguments.weights_beside,
    )
    for place, content in files:
        _write(place, content)


def _print_remarks(arguments: argparse.Namespace, remarks: Sequence[Remark]) -> None:
    """Prints what of the remarks is asked for, where it is asked for."""
    file, wanted = arguments.remarks_output_file, arguments.remarks_filter
    if not arguments.remarks and wanted is None and file is None:
        return
    chosen = remark_output.select(remarks, ".*" if wanted is None else wanted)
    text = remark_output.as_yaml(chosen) if arguments.remark_format == "yaml" else remark_output.as_text(chosen)
    if file is not None:
        _write(file, text.encode())
    else:
        sys.stderr.write(text)


class _Reached(Exception):
    """The stage that is to be emitted."""

    def __init__(self, text: str):
        super().__init__()
        self.text = text


class _Watcher:
    """Sees the stages go by: shows, dumps and prints them, and stops the compilation at the one to be emitted.

    Attributes:
        status: shows on a terminal, while its block runs, what has been done.
    """

    def __init__(self, arguments: argparse.Namespace):
        self._stderr = sys.stderr
        self.status = _status(self._stderr, f"compiling {arguments.model}")
        self._arguments = arguments

    def __call__(self, stage: str, text: str) -> None:
        """Is called by the compiler when it has reached a stage."""
        self.note(stage)
        if self._arguments.dump_dir is not None:
            suffix = {"asm": "s", "ptx": "ptx"}.get(stage, "mlir")
            _write(Path(self._arguments.dump_dir) / f"{EMIT.index(stage):02}-{stage}.{suffix}", text.encode())
        if stage in self._arguments.print_ir_after:
            print(f"// -----// IR after {stage} //----- //\n{text}", file=self._stderr)
        if stage == self._arguments.emit and not self._arguments.print_pipeline:
            raise _Reached(text)

    def note(self, what: str) -> None:
        """Shows that `what` is done."""
        if not isinstance(self.status, contextlib.nullcontext):
            self.status.update(f"compiling {self._arguments.model}: {what} done")


def _status(file: TextIO, text: str) -> Status | contextlib.nullcontext[None]:
    """What shows a text on a terminal; nothing elsewhere, and where rich is not installed."""
    try:
        from rich.console import Console
    except ImportError:
        return contextlib.nullcontext()
    console = Console(file=file)
    return console.status(text, refresh_per_second=4) if console.is_terminal else contextlib.nullcontext()


def _check_places(arguments: argparse.Namespace) -> None:
    """Says before the long work that what comes out of it could not be written."""
    if arguments.output != "-" and not Path(arguments.output).parent.is_dir():
        raise PipelineError(
            f"{arguments.output}: cannot be written: there is no folder {Path(arguments.output).parent}"
        )
    if arguments.output != "-" and Path(arguments.output).is_dir() and arguments.emit != "spirv":
        raise PipelineError(f"{arguments.output}: cannot be written: it is a folder")
    if arguments.report is not None and not Path(arguments.report).parent.is_dir():
        raise PipelineError(
            f"{arguments.report}: cannot be written: there is no folder {Path(arguments.report).parent}"
        )
    if arguments.dump_dir is not None:
        try:
            Path(arguments.dump_dir).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise PipelineError(f"{arguments.dump_dir}: cannot be made a folder: {error.strerror}") from None


def _write_folder(path: Path, files: Mapping[str, bytes]) -> None:
    """Writes files to a folder, which is made if it is not there."""
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise PipelineError(f"{path}: cannot be made a folder: {error.strerror}") from None
    for name, data in files.items():
        _write(path / name, data)


def _write(path: str | Path, data: bytes) -> None:
    """Writes a file, whole or not at all, or to stdout where `path` is `-`."""
    if path == "-":
        sys.stdout.write(data.decode())
        return
    try:
        with replacing(Path(path)) as temporary:
            temporary.write_bytes(data)
    except OSError as error:
        raise PipelineError(f"{path}: cannot be written: {error.strerror}") from None


if __name__ == "__main__":
    sys.exit(main())
