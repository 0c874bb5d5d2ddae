"""onnx's own backend test suite, compiled by pipeline and run by ONNX Runtime; writes what passes to a JSON lines file.

    python scripts/onnx_backend.py -o build/onnx.jsonl               # all node tests and simple models
    python scripts/onnx_backend.py -o build/onnx.jsonl -k resize     # those whose name has `resize`
    python scripts/onnx_backend.py -o build/onnx.jsonl --eager       # the frontend alone: torch runs the graph
    python scripts/onnx_backend.py --summary build/onnx.jsonl        # the counts, and the reasons of what fails

Needs the packages onnx and onnxruntime (`pip install -c constraints.txt -e '.[onnx,bench]'`).
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import sys
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

KINDS = ("node", "simple")

#: What all processes need is loaded before they fork.
_LOADED_ONCE = ("onnxruntime", "pipeline.frontend.onnx.module", "pipeline.frontend.sources", "pipeline.lowering")

#: Seconds that a test may take.
LIMIT = 60


@dataclass(frozen=True)
class Outcome:
    """What became of a test; of each way None where it passed, else the reason."""

    name: str
    kind: str
    runtime: str | None
    pipeline: str | None


def cases(pattern: str) -> Iterator[Any]:
    """The tests whose name contains `pattern`."""
    from onnx.backend.test.loader import load_model_tests

    for kind in KINDS:
        yield from (case for case in load_model_tests(kind=kind) if pattern in case.name)


def model_of(case: Any) -> Any:
    """The model of a test, which lies in a file or was made."""
    import onnx

    return case.model if case.model_dir is None else onnx.load(Path(case.model_dir) / "model.onnx")


def data_of(case: Any) -> Iterator[tuple[list[Any], list[Any]]]:
    """The inputs and expected outputs of a test, set by set."""
    if case.model_dir is None:
        for inputs, outputs in case.data_sets:
            yield [_as_array(value) for value in inputs], [_as_array(value) for value in outputs]
        return
    graph = model_of(case).graph
    for folder in sorted(Path(case.model_dir).glob("test_data_set_*")):
        inputs = [_value(folder / f"input_{at}.pb", value) for at, value in enumerate(graph.input)]
        outputs = [_value(folder / f"output_{at}.pb", value) for at, value in enumerate(graph.output)]
        yield inputs, outputs


def _as_array(value: Any) -> Any:
    """A tensor that onnx made, of types that NumPy lacks, as an array."""
    from onnx import TensorProto, numpy_helper

    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def _value(path: Path, declared: Any) -> Any:
    """A tensor, a sequence or an optional value of a file, by the type that the graph declares."""
    import onnx
    from onnx import numpy_helper

    kind = declared.type.WhichOneof("value")
    readers = {
        "tensor_type": (onnx.TensorProto, numpy_helper.to_array),
        "sequence_type": (onnx.SequenceProto, numpy_helper.to_list),
        "optional_type": (onnx.OptionalProto, numpy_helper.to_optional),
    }
    proto, convert = readers[kind]
    message = proto()
    message.ParseFromString(path.read_bytes())
    return convert(message)


def by_runtime(case: Any) -> str | None:
    """Runs a test by ONNX Runtime."""
    import onnxruntime

    try:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        model = model_of(case)
        data = model.SerializeToString()
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        names = [value.name for value in model.graph.input]
        for inputs, expected in data_of(case):
            feeds = dict(zip(names, inputs, strict=True))
            known = {value.name for value in session.get_inputs()}
            found = session.run(None, {name: value for name, value in feeds.items() if name in known})
            compare(expected, found, case)
    except Exception as error:  # it raises many types
        return line_of(error)
    return None


def by_pipeline(case: Any, eager: bool) -> str | None:
    """Runs a test by pipeline, or its graph by torch."""
    try:
        for inputs, expected in data_of(case):
            compare(expected, run_model(model_of(case), inputs, eager), case)
    except Exception as error:  # what is unforeseen is what is looked for
        return line_of(error)
    return None


def run_model(model: Any, inputs: list[Any], eager: bool = False) -> list[Any]:
    """The results of a model, compiled for these inputs; inputs that decide sizes are compiled in as numbers."""
    args = tuple(map(as_torch, inputs))
    while True:
        try:
            results = _call(model, args, eager)
            break
        except Exception as error:
            numbers = deciding(error, args)
            if numbers is None:
                raise
            args = numbers
    listed = list(results) if isinstance(results, tuple) else [results]
    return [as_array(value) for value in listed]


def _call(model: Any, args: tuple[Any, ...], eager: bool) -> Any:
    import torch

    import pipeline

    if eager:
        from pipeline.frontend.capture.model_files import onnx_module

        with torch.no_grad():
            return onnx_module(model)(*args)
    executable = pipeline.compile(model, args, cache=False)
    return executable(*args)


def deciding(error: Exception, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The arguments with small ones of integers as numbers, where an error asks for that; None where it does not."""
    import torch

    small = [isinstance(arg, torch.Tensor) and arg.numel() <= 64 and arg.dim() <= 1 for arg in args]
    if "as lists of numbers" not in str(error) or not any(small):
        return None
    return tuple(arg.tolist() if is_small else arg for arg, is_small in zip(args, small, strict=True))


def as_torch(value: Any) -> Any:
    """What ONNX's helpers give, as pipeline takes it."""
    from pipeline.frontend.onnx.element_types import as_tensor

    return (
        [as_torch(item) for item in value]
        if isinstance(value, list)
        else as_tensor(value)
        if value is not None
        else None
    )


def as_array(value: Any) -> Any:
    """The inverse, for what NumPy has."""
    import torch

    if isinstance(value, list):
        return [as_array(item) for item in value]
    if not isinstance(value, torch.Tensor):
        return value
    has_numpy = value.dtype not in (torch.bfloat16,) and not str(value.dtype).startswith("torch.float8")
    return value.numpy() if has_numpy else value.to(torch.float32).numpy()


def compare(expected: list[Any], found: list[Any], case: Any) -> None:
    """Raises `AssertionError` where results are not those that are expected, as onnx's own runner does."""
    assert len(expected) == len(found), f"{len(found)} results instead of {len(expected)}"
    for want, got in zip(expected, found, strict=True):
        if isinstance(want, list):
            compare(want, list(got), case)
            continue
        if want is None:
            assert got is None
            continue
        want, got = np.asarray(want), np.asarray(got)
        assert want.shape == got.shape, f"shape {got.shape} instead of {want.shape}"
        if want.dtype.kind not in "biufcO" or want.dtype.name.startswith(("bfloat", "float8", "int4", "uint4")):
            want, got = want.astype(np.float32), got.astype(np.float32)
        else:
            assert want.dtype == got.dtype, f"dtype {got.dtype} instead of {want.dtype}"
        if want.dtype == object:
            np.testing.assert_array_equal(got, want)
        else:
            np.testing.assert_allclose(got, want, rtol=case.rtol, atol=case.atol)


def line_of(error: Exception) -> str:
    """One line that says what is wrong."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:4])}"[:400]


def _warm() -> None:
    """Compiles a sum: what is loaded for the first compilation, processes that fork need not load."""
    from onnx import TensorProto, helper

    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "sum", [x], [y])
    run_model(helper.make_model(graph), [np.ones(3, np.float32)])


def _work(task: tuple[Any, bool, bool, bool]) -> Outcome:
    case, eager, with_runtime, only_theirs = task
    warnings.simplefilter("ignore")
    runtime = by_runtime(case) if with_runtime else None
    if runtime is not None and only_theirs:
        return Outcome(case.name, case.kind, runtime, "not run")
    return Outcome(case.name, case.kind, runtime, by_pipeline(case, eager))


def _child(task: tuple[Any, bool, bool, bool], end: Any) -> None:
    end.send(_work(task))


def outcome(task: tuple[Any, bool, bool, bool]) -> Outcome:
    """A test in a process of its own, which may end or hang."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(False)
    child = context.Process(target=_child, args=(task, sender))
    child.start()
    sender.close()
    try:
        if not receiver.poll(LIMIT):
            return Outcome(task[0].name, task[0].kind, "not known", f"takes longer than {LIMIT} s")
        return receiver.recv()
    except EOFError:
        return Outcome(task[0].name, task[0].kind, "not known", "the process ended")
    finally:
        child.kill()
        child.join()


def summary(path: Path) -> str:
    """The counts, and the tests that ONNX Runtime passes and pipeline does not."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    lines = []
    for kind in KINDS:
        own = [row for row in rows if row["kind"] == kind]
        theirs = [row for row in own if row["runtime"] is None]
        both = [row for row in theirs if row["pipeline"] is None]
        passed = sum(row["pipeline"] is None for row in own)
        share = 100 * len(both) / max(len(theirs), 1)
        lines.append(
            f"{kind}: {len(own)} tests, ONNX Runtime passes {len(theirs)}, pipeline {passed}; "
            f"of ONNX Runtime's {len(both)} ({share:.1f} %)"
        )
    failing = [row for row in rows if row["runtime"] is None and row["pipeline"] is not None]
    lines += [f"  {row['name']}: {row['pipeline'][:230]}" for row in failing]
    return "\n".join(lines)


def main() -> None:
    """Runs the suite, or says what a run gave."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, help="the JSON lines file; tests that it has are not run again")
    parser.add_argument("-k", dest="pattern", default="", help="a part of the names of the tests that run")
    parser.add_argument("--eager", action="store_true", help="torch runs the graph, nothing is compiled")
    parser.add_argument("--no-runtime", action="store_true", help="leave ONNX Runtime out")
    parser.add_argument("--only-theirs", action="store_true", help="compile those alone that ONNX Runtime passes")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--summary", type=Path)
    arguments = parser.parse_args()
    if arguments.summary is not None:
        sys.stdout.write(summary(arguments.summary) + "\n")
        return
    done = set()
    if arguments.output.exists():
        done = {json.loads(line)["name"] for line in arguments.output.read_text().splitlines()}
    import torch

    for name in _LOADED_ONCE:
        importlib.import_module(name)
    torch.set_num_threads(1)
    _warm()
    choices = arguments.eager, not arguments.no_runtime, arguments.only_theirs
    tasks = [(case, *choices) for case in cases(arguments.pattern) if case.name not in done]
    tasks.sort(key=lambda task: ("attention" in task[0].name) + 2 * ("_expanded" in task[0].name))  # those last
    from concurrent.futures import ThreadPoolExecutor

    with arguments.output.open("a") as file, ThreadPoolExecutor(arguments.processes) as pool:
        for found in pool.map(outcome, tasks):
            file.write(json.dumps(asdict(found)) + "\n")
            file.flush()
    sys.stdout.write(summary(arguments.output) + "\n")


if __name__ == "__main__":
    main()
