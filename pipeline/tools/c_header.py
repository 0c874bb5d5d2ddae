"""The C header of an object file or library: which slot of a call holds what.

See `pipeline.runtime.interface.entry_point`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pipeline.runtime.interface.aligned_memory import byte_size
from pipeline.runtime.interface.code import Code
from pipeline.runtime.interface.entry_point import ALIGNMENT, EntryPoint
from pipeline.runtime.interface.signature import ParameterSource, Signature, TensorType
from pipeline.runtime.native.openmp_team import SPAWN, THREADS

_INTRODUCTION = """/* How to call {file}, which pipeline-compile wrote.

   pipeline_main(slots) runs the model. Each slot of the array is 64 bits: the address of a tensor's elements, row by
   row, or a number; behind the address of a tensor come those of its sizes that are not known in advance, marked ?.
   A complex number is two real ones, the real part first.
   Tensors that it reads are not written to, but for those that it updates. What is written to must not overlap with
   anything else.{prepare}

   For the CPU {cpu}{required}. */
"""

_PREPARE = """ Call pipeline_prepare(slots) once before,
   and again when weights have changed: it computes the PREPARED tensors from the weights."""


def c_header(code: Code, signature: Signature, file: str) -> str:
    """The header of `file`, whose code is `code`."""
    prefix = re.sub(r"\W", "_", file.partition(".")[0]).upper()
    needs = f", which has {', '.join(code.required)}" if code.required else ""
    prepare = _PREPARE if code.prepare is not None else ""
    lines = [
        _INTRODUCTION.format(file=file, cpu=code.cpu, required=needs, prepare=prepare),
        f"#ifndef {prefix}_H\n#define {prefix}_H\n\n#include <stdint.h>\n",
        '#ifdef __cplusplus\nextern "C" {\n#endif\n',
        "void pipeline_main(int64_t *slots);\n",
        *_defines(prefix, "", _main(code, signature)),
    ]
    if any(SPAWN in object_file for object_file in code.objects):
        lines += [f"\n/* How many threads share the work of a kernel; 0: as OpenMP says. */\nextern int32_t {THREADS};"]
    if code.prepare is not None:
        lines += [
            "\nvoid pipeline_prepare(int64_t *slots);\n",
            *_defines(prefix, "PREPARE_", _prepare(code, signature)),
        ]
    if code.checks:
        lines += ["\n/* What the number of a failed check means:", *_numbered(code.checks), "*/"]
    return "\n".join([*lines, "\n#ifdef __cplusplus\n}\n#endif\n\n#endif", ""])


def _defines(prefix: str, entry: str, slots: Iterator[tuple[str, int, str]]) -> Iterator[str]:
    taken: set[str] = set()
    for name, value, meaning in slots:
        word = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_").upper()
        while word in taken:
            word += "_"
        taken.add(word)
        yield f"#define {prefix}_{entry}{word} {value} /* {meaning} */"


def _main(code: Code, signature: Signature) -> Iterator[tuple[str, int, str]]:
    yield "slots", code.main.slots, "how many there are"
    weights = {weight.name: weight.type for weight in signature.weights}
    updated = _updated(code, signature)
    yield from _sources(code.main_sources, code.main, signature, weights, code.prepared, updated)
    if any(source.kind == "workspace" for source in code.main_sources):
        least = " at least" if code.thread_bytes else ""
        yield "workspace bytes", code.workspace, f"how large the workspace is{least}; aligned to {ALIGNMENT} bytes"
        if code.thread_bytes:
            yield "thread bytes", code.thread_bytes, "and larger by so much for each further thread that is to help"
    own = len(code.main_sources)
    places = iter(code.main.parameter_slots()[own:])
    returned = iter(zip(code.main.result_slots(), code.main.results, strict=True))
    meanings = _results(signature)
    for number, where in enumerate(code.main.where):
        if where == "parameter":
            yield f"result {number}", next(places), f"{meanings[number]}, which it writes"
        elif where == "result":
            slot, value = next(returned)
            left = "" if value.shape is None else ": allocation to free(), address, offset, sizes, strides"
            yield f"result {number}", slot, f"{meanings[number]}, which it leaves{left}"


def _results(signature: Signature) -> dict[int, str]:
    """What each result of the code is, by its number."""
    meanings = {}
    for mutation in signature.mutations:
        name = mutation.weight if mutation.argument is None else signature.arguments[mutation.argument].name
        meanings[mutation.result] = f"the new value of {name}"
    for result in signature.results:
        if result.kind == "computed":
            order = "" if result.permutation is None else f" that the model permutes by {result.permutation}"
            meanings[result.index] = f"{result.type_in_memory or 'a number'}{order}"
        elif result.kind == "number":
            meanings[result.index] = f"{result.type} that the model returns as a number"
    return meanings


def _prepare(code: Code, signature: Signature) -> Iterator[tuple[str, int, str]]:
    assert code.prepare is not None
    yield "slots", code.prepare.slots, "how many there are"
    weights = {weight.name: weight.type for weight in signature.weights}
    yield from _sources(code.prepare_sources, code.prepare, signature, weights, code.prepared)
    for number, slot in enumerate(code.prepare.parameter_slots()[len(code.prepare_sources) :]):
        kind = code.prepared[number]
        yield f"prepared {number}", slot, f"{kind}, which it writes"
        yield f"prepared {number} bytes", byte_size(kind), "how large that is"


def _sources(
    sources: Sequence[ParameterSource],
    entry: EntryPoint,
    signature: Signature,
    weights: dict[str, TensorType],
    prepared: Sequence[TensorType],
    updated: frozenset[int | str] = frozenset(),
) -> Iterator[tuple[str, int, str]]:
    for source, slot, value in zip(sources, entry.parameter_slots(), entry.parameters, strict=False):
        dynamic = ", then the sizes marked ?" if value.dynamic_dims else ""
        if source.kind == "argument":
            argument = signature.arguments[source.index]
            written = ", which it updates" if source.index in updated else ""
            yield f"argument {argument.name}", slot, f"{argument.type or 'a number'}{dynamic}{written}"
        elif source.kind == "weight":
            written = ", which it updates" if source.name in updated else ""
            yield f"weight {source.name}", slot, f"{weights[source.name]}{written}"
        elif source.kind == "prepared":
            yield f"prepared {source.index}", slot, str(prepared[source.index])
        elif source.kind == "seed":
            yield "seed", slot, "64 bits: random numbers are a function of them"
        elif source.kind == "workspace":
            yield "workspace", slot, "memory for temporaries, then its size in bytes"
        elif source.kind == "status":
            yield "status", slot, "the address of an int64_t that is 0: it becomes the number of a check that failed"


def _updated(code: Code, signature: Signature) -> frozenset[int | str]:
    """The numbers of the arguments and the names of the weights that the code itself writes to."""
    written = [mutation for mutation in signature.mutations if code.main.where[mutation.result] == "argument"]
    return frozenset(str(mutation.weight) if mutation.argument is None else mutation.argument for mutation in written)


def _numbered(messages: Sequence[str]) -> Iterator[str]:
    for number, message in enumerate(messages, 1):
        yield f"   {number}: {message.replace('*/', '* /')}"
