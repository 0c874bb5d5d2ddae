"""pipeline-run: runs an artifact or a model on arrays in files. For an artifact it imports neither torch nor MLIR."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from pipeline import load, plugins
from pipeline.errors import PipelineError
from pipeline.installation import require_compiler
from pipeline.runtime.call.array_libraries import as_numpy, dtype_and_shape, library_of
from pipeline.runtime.executable import Executable
from pipeline.runtime.interface.pytree import flatten, leaf_paths, unflatten
from pipeline.runtime.interface.signature import Argument
from pipeline.runtime.interface.small_floats import SMALL_FLOATS, as_doubles
from pipeline.tools.agreement import difference, errors
from pipeline.tools.arrays_file import read_array, write_array
from pipeline.tools.benchmark import comparison, measure, summary
from pipeline.tools.command_line import exit_code
from pipeline.tools.model_file import takes_inputs
from pipeline.tools.run_arguments import parse_arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the driver; returns the exit code, 0 or 1."""
    arguments = parse_arguments(sys.argv[1:] if argv is None else argv)
    return exit_code("pipeline-run", lambda: _run(arguments))


def _run(arguments: argparse.Namespace) -> None:
    forms = _forms(arguments)
    for form in forms.values() if arguments.num_threads is not None else ():
        form.num_threads = arguments.num_threads
    executable = next(iter(forms.values()))
    signature = executable.signature
    names = leaf_paths(signature.result_tree, "result")
    outputs = _assign("output", arguments.output, names)
    args, kwargs = _call(arguments, executable)
    results = _results(executable, args, kwargs)
    for name, path in outputs.items():
        if not isinstance(results[name], np.ndarray):
            raise PipelineError(f"--output {name}: is {results[name]!r}, no array")
        write_array(path, results[name])
    if not outputs:
        sys.stdout.writelines(f"{name}: {_summary(value)}\n" for name, value in results.items())
    if arguments.compare_precision:
        other = list(forms.values())[1]
        args, kwargs = _call(arguments, other)
        sys.stdout.write(errors(results, _results(other, args, kwargs)))
    if arguments.sensitivity:
        from pipeline.tools import sensitivity

        def call(form: Executable) -> dict[str, Any]:
            args, kwargs = _call(arguments, form)
            return _results(form, args, kwargs)

        sys.stdout.writelines(sensitivity.report(executable, call, arguments.group, arguments.bound))
    if arguments.profile:
        profile = executable.profile(*args, repeats=arguments.repeats, **kwargs)
        sys.stdout.write(str(profile))
        if arguments.trace is not None:
            profile.save_trace(arguments.trace)
    if arguments.report is not None:
        executable.report(arguments.report, *args, repeats=arguments.repeats, **kwargs)
    if not arguments.benchmark:
        return
    if len(forms) > 1:
        _compare(arguments, forms, results)
        return
    (times,) = measure([lambda: executable(*args, **kwargs)], arguments.warmup, arguments.repeats)
    sys.stdout.write(summary(times))


def _forms(arguments: argparse.Namespace) -> dict[str, Executable]:
    """What is to be run: one executable, or two to compare, by their names."""
    for path in arguments.load_plugin:
        plugins.load_file(path)
    if not arguments.is_model:
        names = [arguments.artifact] + [arguments.against] * (arguments.against is not None)
        return {name: load(name) for name in names}
    require_compiler()
    from pipeline.tools.run_model import compile_forms

    forms, arguments.example = compile_forms(arguments)
    return forms if arguments.against in (None, *forms) else {**forms, arguments.against: load(arguments.against)}


def _call(arguments: argparse.Namespace, executable: Executable) -> tuple[Any, Any]:
    """The arguments: those given, or the example arguments of a model where none are."""
    are_example = not arguments.input or takes_inputs(arguments.artifact)
    if arguments.is_model and are_example and arguments.example is not None:
        return arguments.example
    signature = executable.signature
    return unflatten(signature.argument_tree, iter(_inputs(signature.arguments, arguments.input)))


def _results(executable: Executable, args: Any, kwargs: Any) -> dict[str, Any]:
    """The results by name, tensors as arrays."""
    tree = executable.signature.result_tree
    values = [
        value if library_of(value) is None else as_numpy(value) for value in flatten(tree, executable(*args, **kwargs))
    ]
    return dict(zip(leaf_paths(tree, "result"), values, strict=True))


def _compare(arguments: argparse.Namespace, forms: Mapping[str, Executable], results: dict[str, Any]) -> None:
    """Compares the second form with the first, whose results are given: their results, then their times."""
    (first, executable), (second, other) = forms.items()
    calls = []
    for form in (executable, other):
        args, kwargs = _call(arguments, form)
        calls.append(partial(form, *args, **kwargs))
    args, kwargs = _call(arguments, other)
    is_rounded = arguments.compare_precision or arguments.precision != "f32"
    different = None if is_rounded else difference(results, _results(other, args, kwargs))
    if different is not None:
        option = "--against" if arguments.against is not None else "--compare-unfused"
        raise PipelineError(f"{option} {second}: {different}")
    times = measure(calls, arguments.warmup, arguments.repeats)
    sys.stdout.write(comparison(dict(zip((first, second), times, strict=True))))


def _inputs(wanted: Sequence[Argument], given: Sequence[str]) -> list[Any]:
    """The leaves of the call; the constants that the model was compiled with come by themselves."""
    values = _assign("input", given, [argument.name for argument in wanted if argument.kind != "constant"])
    leaves: list[Any] = []
    for argument in wanted:
        if argument.kind == "constant":
            leaves.append(argument.value)
        elif argument.name not in values:
            raise PipelineError(f"--input {argument.name}: missing; expected {argument.type or 'a number'}")
        elif argument.type is None:
            leaves.append(_number(argument.name, values[argument.name]))
        else:
            leaves.append(read_array(values[argument.name], argument.type.dtype))
    return leaves


def _assign(option: str, given: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """What is given for each name: `name=value` for that name, the others in the order of the names that are left."""
    assigned: dict[str, str] = {}
    positional = []
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or name not in names:
            positional.append(text)
        elif name in assigned:
            raise PipelineError(f"--{option} {name}: given twice")
        else:
            assigned[name] = value
    left = [name for name in names if name not in assigned]
    if len(positional) > len(left):
        there = f"it has {', '.join(names)}" if names else "it has none"
        raise PipelineError(f"--{option} {positional[len(left)]}: the model has no {option} for it; {there}")
    return assigned | dict(zip(left, positional, strict=False))


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise PipelineError(f"--input {name}: expected a number, got {text!r}") from None


def _summary(value: Any) -> str:
    """Dtype, shape and the first elements of an array; a number or None as it is."""
    if not isinstance(value, np.ndarray):
        return repr(value)
    dtype, shape = dtype_and_shape(value)
    head = f"{dtype}[{', '.join(map(str, shape))}]"
    if not value.size:
        return head
    shown = as_doubles(value) if dtype in SMALL_FLOATS else value
    first = ", ".join(f"{element:.6g}" for element in shown.reshape(-1)[:4].tolist())
    more = ", ..." if value.size > 4 else ""
    numbers = as_doubles(value)
    spread = f"min {numbers.min():.6g}, mean {numbers.mean():.6g}, max {numbers.max():.6g}"
    return f"{head} = {first}{more} ({spread})"


if __name__ == "__main__":
    sys.exit(main())
