"""From an executable to what its report has. Needs no compiler where there is none: what is not there is said."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pipeline.errors import PipelineError
from pipeline.report.contents import VERSION, Contents
from pipeline.report.hierarchy import module_of, with_modules
from pipeline.report.kernel_places import KernelPlaces
from pipeline.report.recording import Graph, ModelNode, Recording
from pipeline.report.sources import files_of
from pipeline.runtime.interface.aligned_memory import byte_size
from pipeline.runtime.interface.code import Kernel
from pipeline.runtime.interface.signature import TensorType
from pipeline.version import __version__

if TYPE_CHECKING:
    from pipeline.runtime.executable import Executable
    from pipeline.runtime.report.profiler import Profile

#: Runs that the timeline shows; of longer calls it shows the first.
_EVENTS = 4000

_NO_RECORDING = "the IR, the passes and the graph: {}"
_FROM_FILE = "it was loaded from a file, which has machine code alone"
_IN_PARTS = (
    "torch runs some ops, between {} parts that are compiled on their own; each of exe.parts has a report of its own"
)
_NO_CALL = "times: give report() the arguments of a call, or use pipeline-run --report"
_UNTIMED = "times: this executable does not time its kernels, as code for CPUs does that is compiled with profile=True"


def contents_of(executable: Executable, args: tuple[Any, ...], kwargs: Mapping[str, Any], repeats: int) -> Contents:
    """What the report of an executable has; a call with the arguments is measured, if there are any."""
    missing: list[str] = []
    recording = _recording(executable, missing)
    profile = _profile(executable, args, kwargs, repeats, missing)
    contents = Contents(_summary(executable, recording, missing))
    contents.kernels = [_kernel(kernel, _launches(executable)) for kernel in executable.kernels]
    _add_recording(contents, recording)
    places = KernelPlaces(recording.compiled)
    contents.edges = places.edges(recording.remarks)
    if not recording.remarks:
        contents.remarks = [asdict(remark) | {"change": remark.change} for remark in executable.remarks]
    if profile is not None:
        contents.profile = _measured(profile, places, executable)
    contents.memory = _memory(executable, recording, missing)
    contents.sources = files_of(_lines(contents))
    return contents


def _recording(executable: Executable, missing: list[str]) -> Recording:
    recordings = executable.recordings()
    if len(recordings) == 1:
        return recordings[0]
    parts = getattr(executable, "parts", ())
    missing.append(_NO_RECORDING.format(_IN_PARTS.format(len(parts)) if executable.fallbacks else _FROM_FILE))
    return Recording()


def _profile(
    executable: Executable, args: tuple[Any, ...], kwargs: Mapping[str, Any], repeats: int, missing: list[str]
) -> Profile | None:
    if not args and not kwargs and executable.signature.arguments:
        missing.append(_NO_CALL)
        return None
    if not executable.has_profile:
        missing.append(_UNTIMED)
        return None
    return executable.profile(*args, repeats=repeats, **kwargs)


def _summary(executable: Executable, recording: Recording, missing: list[str]) -> dict[str, Any]:
    signature = executable.signature
    return {
        "version": VERSION,
        "title": executable.name,
        "made": datetime.now().astimezone().isoformat(timespec="seconds"),
        "pipeline": __version__,
        "machine": platform.machine(),
        "target": executable.target,
        "threads": executable.num_threads,
        "options": recording.options,
        "classes": recording.classes,
        "arguments": [_named(argument.name, argument.type or argument.value) for argument in signature.arguments],
        "results": [str(result.type) for result in signature.results],
        "fallbacks": [asdict(fallback) for fallback in executable.fallbacks],
        "pipelines": executable.passes,
        "missing": missing,
    }


def _named(name: str, kind: Any) -> dict[str, str]:
    return {"name": name, "type": str(kind)}


def _launches(executable: Executable) -> list[dict[str, Any]]:
    """What is launched, on a device."""
    launches = () if executable.fallbacks else getattr(executable.code, "launches", ())
    return [{name: getattr(launch, name) for name in ("name", "threads", "block", "items")} for launch in launches]


def _kernel(kernel: Kernel, launches: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "kind": kernel.kind,
        "ops": kernel.ops,
        "words": kernel.words,
        "calls": kernel.calls,
        "operations": kernel.operations,
        "bytes": kernel.bytes,
        "lines": list(dict.fromkeys(op.source for place in kernel.places for op in place.ops if op.source)),
        "launches": [launch for launch in launches if launch["name"].partition("_dispatch")[0] == kernel.name],
        "torch": list(dict.fromkeys(op.op for place in kernel.places for op in place.ops if op.op)),
    }


def _add_recording(contents: Contents, recording: Recording) -> None:
    known = recording.nodes
    contents.remarks = recording.remarks
    contents.nodes = {name: asdict(node) for name, node in known.items()}
    contents.graphs = {
        "imported": _graph(recording.imported, known, contents.summary),
        "compiled": _graph(recording.compiled, known, contents.summary),
    }
    contents.texts = recording.texts
    for entry in recording.passes:
        functions = [(change.function, change.added, change.removed) for change in entry.changes]
        contents.passes.append({**asdict(entry), "changes": functions})
        contents.changes.append([asdict(change) for change in entry.changes])


def _graph(graph: Graph, known: Mapping[str, ModelNode], summary: Mapping[str, Any]) -> dict[str, Any]:
    """A graph with boxes for modules; arguments have the names that calls have for them."""
    boxed = with_modules(graph, known)
    nodes = []
    for node in boxed.nodes:
        module = module_of(node, known)
        nodes.append({**asdict(node), "module": module})
        number = node.label.removeprefix("argument ")
        if node.kind == "argument" and number.isdecimal() and int(number) < len(summary["arguments"]):
            nodes[-1]["label"] = summary["arguments"][int(number)]["name"]
    return {"boxes": [asdict(box) for box in boxed.boxes], "nodes": nodes}


def _measured(profile: Profile, places: KernelPlaces, executable: Executable) -> dict[str, Any]:
    rows = profile.sites or profile.rows
    start = min((begin for _, begin, _ in profile.events), default=0)
    nodes = places.of_sites([row.name for row in rows])
    return {
        "seconds": profile.seconds,
        "code_seconds": profile.code_seconds,
        "calls": profile.calls,
        "peak": asdict(profile.peak),
        "sites": [{**asdict(row), "node": node} for row, node in zip(rows, nodes, strict=True)],
        "events": [(site, begin - start, end - begin) for site, begin, end in profile.events[:_EVENTS] if site >= 0],
        "left_out": max(0, len(profile.events) - _EVENTS),
    }


def _memory(executable: Executable, recording: Recording, missing: list[str]) -> dict[str, Any]:
    try:
        footprint: dict[str, Any] | None = asdict(executable.memory)
    except PipelineError as error:
        missing.append(str(error))
        footprint = None
    signature = executable.signature
    weights = [_named(weight.name, weight.type) | {"bytes": _bytes(weight.type)} for weight in signature.weights]
    prepared = getattr(getattr(executable, "_code", None), "prepared", ())
    return {
        "footprint": footprint,
        "plans": [asdict(plan) for plan in sorted(recording.memory, key=lambda plan: plan.function)],
        "weights": sorted(weights, key=lambda weight: -(weight["bytes"] or 0)),
        "prepared": [
            _named(f"prepared {number}", kind) | {"bytes": _bytes(kind)} for number, kind in enumerate(prepared)
        ],
    }


def _bytes(kind: TensorType) -> int | None:
    return byte_size(kind) if all(isinstance(size, int) for size in kind.shape) else None


def _lines(contents: Contents) -> Iterable[str | None]:
    """The source lines that anything in a report is said to come from."""
    for kernel in contents.kernels:
        yield from kernel["lines"]
    for node in contents.nodes.values():
        yield node["source"]
    for remark in contents.remarks:
        yield remark["source"]
