"""The C header of a compiled model: its functions on tensors, in place of slots and addresses."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files

from pipeline.errors import PipelineError
from pipeline.runtime.call.slot_layout import result_types
from pipeline.runtime.interface.aligned_memory import byte_size
from pipeline.runtime.interface.code import Code
from pipeline.runtime.interface.pytree import leaf_paths
from pipeline.runtime.interface.signature import Result, Signature, TensorType
from pipeline.runtime.interface.team import LIBGOMP, USE_TEAM
from pipeline.runtime.native.cpu_features import (
    AARCH64_BITS,
    ARCH_PRCTL,
    ARCH_REQ_XCOMP_PERM,
    HWCAP,
    HWCAP2,
    TILE_DATA,
)
from pipeline.tools.c_interface.call import Output, c_of_call
from pipeline.tools.c_interface.names import Names
from pipeline.tools.c_interface.weights import PackedWeights
from pipeline.version import __version__

#: Of the features that a CPU must have, those that C compilers have a test for, by their names.
_TESTED = (
    *(
        "popcnt",
        "sse3",
        "ssse3",
        "sse4.1",
        "sse4.2",
        "avx",
        "avx2",
        "fma",
        "bmi",
        "bmi2",
        "gfni",
        "avx512f",
        "avx512vl",
    ),
    *("avx512bw", "avx512dq", "avx512cd", "avx512ifma", "avx512vbmi", "avx512vbmi2", "avx512vnni", "avx512bitalg"),
    *("avx512vpopcntdq", "avx512bf16"),
)

_OPEN = """
/* Readies a model@FROM@; `@p@_close` frees what that took, whether it succeeded or not. */
static inline int @p@_open(@p@ *model@PARAMETER@) {
  memset(model, 0, sizeof *model);
  model->seed = UINT64_C(0x9e3779b97f4a7c15);
@CPU@@TEAM@  const char *data = NULL;
@LOCATE@  static const size_t starts[] = {@STARTS@0};
  static const size_t sizes[] = {@SIZES@0};
  static const char updated[] = {@UPDATED@0};
  for (int number = 0; number < @WEIGHT_COUNT@; ++number) {
    model->weights[number] = (void *)(data + starts[number]);
    if (!updated[number]) continue;
    model->weights[number] = @p@_allocate(sizes[number]); /* the model's own */
    if (!model->weights[number]) return @p@_fail(model, "memory", "there is not enough");
    memcpy(model->weights[number], data + starts[number], sizes[number]);
  }
@PREPARE@  return 0;
}

/* Frees what a model took. */
static inline void @p@_close(@p@ *model) {
  static const char updated[] = {@UPDATED@0};
  for (int number = 0; number < @WEIGHT_COUNT@; ++number)
    if (updated[number]) free(model->weights[number]);
  for (int number = 0; number < @PREPARED_COUNT@; ++number) free(model->prepared[number]);
  free(model->workspace);
  free(model->nothing);
  if (model->file) munmap((void *)model->file, model->file_size);
  memset(model, 0, sizeof *model);
}
"""

_MAP = """  int file = open(path, O_RDONLY);
  struct stat status;
  if (file < 0) return @p@_fail(model, path, "cannot be opened");
  if (fstat(file, &status)) status.st_size = 0;
  void *mapped = status.st_size == @FILE_SIZE@ ? mmap(NULL, @FILE_SIZE@, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
  close(file);
  if (mapped == MAP_FAILED) return @p@_fail(model, path, "is not the file of this model's weights");
  model->file = (const char *)mapped;
  model->file_size = @FILE_SIZE@;
  if (memcmp(mapped, "@DIGEST@\\n", 64)) return @p@_fail(model, path, "has the weights of another compilation");
  data = model->file + 64;
"""

_TEAM = """  void *libgomp = dlopen("libgomp.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (libgomp && @FOUND@)
    @p@_code_use_team(@FUNCTIONS@);
"""


@dataclass(frozen=True)
class Weights:
    """Where a program finds the weights: inside of the code, or in a file of this name."""

    packed: PackedWeights
    file: str | None


def header(
    code: Code, signature: Signature, weights: Weights, prefix: str, file: str, title: str, *, is_shared: bool
) -> str:
    """The header.

    Args:
        prefix: what all its names begin with, an identifier of C.
        file: the file with the code.
        title: what the model is called, for people.

    Raises:
        PipelineError: the model has something that the header's functions cannot take; says what.
    """
    _check(code)
    names = Names()
    inputs = _inputs(signature, names)
    outputs = _outputs(code, signature, names)
    has_team = any(USE_TEAM.encode() in data for data in code.objects)
    declared = ["const char *@p@_code_weights(void);\n"] if weights.file is None else []
    if code.prepare is not None:
        declared += ["void @p@_code_prepare(int64_t *slots);\n"]
    if has_team:
        declared += ["void @p@_code_use_team(void *, void *, void *, void *);\nvoid @p@_code_set_threads(int32_t);\n"]
    holes = {
        "FILE": file,
        "TITLE": _comment(title),
        "VERSION": __version__,
        "CPU": code.cpu,
        "SUMMARY": "\n".join(f"   {line}" for line in _summary(signature, inputs, outputs, weights)),
        "OPEN_EXAMPLE": "" if weights.file is None else f', "{weights.file}"',
        "RUN_EXAMPLE": "".join(f", {name}" for name in [*inputs.values(), *(output.name for output in outputs)]),
        "LINK": file if is_shared else f"{file} -lm -lgcc_s",
        "DECLARATIONS": "".join(declared),
        "MACHINE": code.machine,
        "WEIGHT_COUNT": str(len(weights.packed.names)),
        "PREPARED_COUNT": str(len(code.prepared)),
        "OPEN": _open(code, signature, weights, has_team),
        "RUN": c_of_call(code, signature, weights.packed.names, inputs, outputs, has_team),
    }
    text = files("pipeline.tools.c_interface").joinpath("template.h").read_text()
    text = _filled(text, holes)
    return text.replace("@p@", prefix).replace("@P@", prefix.upper())


def _filled(text: str, holes: dict[str, str]) -> str:
    return re.sub(r"@([A-Z_]{2,})@", lambda hole: holes.get(hole[1], hole[0]), text)


def _check(code: Code) -> None:
    if code.externals:
        called = ", ".join(external.function for external in code.externals)
        raise PipelineError(
            f"the model calls functions of others ({called}), which --emit=so and obj do not take along"
        )
    if any(source.kind == "profile" for source in code.main_sources):
        raise PipelineError("--profile: code that times its kernels is for --emit=exe, whose runtime reads the times")


def _inputs(signature: Signature, names: Names) -> dict[int, str]:
    """What the arguments are called in C, by number; constants are none of them."""
    return {
        number: names.take(argument.name)
        for number, argument in enumerate(signature.arguments)
        if argument.kind != "constant"
    }


def _outputs(code: Code, signature: Signature, names: Names) -> list[Output]:
    """What a call writes for its caller, in order."""
    made, types = [], result_types(signature, len(code.main.where))
    for path, result in zip(leaf_paths(signature.result_tree, "result"), signature.results, strict=True):
        if result.kind in ("computed", "number"):
            kind = types[result.index]
            is_allocated = code.main.where[result.index] == "result" and kind is not None
            made.append(Output(names.take(path), result.index, kind or TensorType("int64", ()), is_allocated))
    return made


def _summary(
    signature: Signature, inputs: dict[int, str], outputs: Sequence[Output], weights: Weights
) -> Iterator[str]:
    """What a call takes and gives, a line each."""
    written = {mutation.argument for mutation in signature.mutations}
    for number, name in inputs.items():
        argument = signature.arguments[number]
        yield f"{name}: {argument.type or 'a number'}" + (", which it updates" if number in written else "")
    for symbol, low, high in signature.ranges:
        yield f"  {symbol}: {low} to {high}"
    for argument in signature.arguments:
        if argument.kind == "constant":
            yield _comment(f"{argument.name} is {argument.value!r}, as it was compiled")
    by_index: dict[int, Result] = {result.index: result for result in signature.results if result.kind == "computed"}
    for output in outputs:
        result = by_index.get(output.index)
        text = f"{output.name}: {output.type}, which it writes"
        if result is not None and result.permutation is not None:
            text += f"; the model's result is this with its dimensions in the order {result.permutation}"
        if output.is_allocated:
            text += "; give room for its shape, and free() its data"
        yield text
    for path, result in zip(leaf_paths(signature.result_tree, "result"), signature.results, strict=True):
        if result.kind == "argument":
            yield _comment(f"{path} is the argument {signature.arguments[result.index].name} itself")
        elif result.kind == "constant":
            yield _comment(f"{path} is {result.value!r}")
    if any(mutation.weight for mutation in signature.mutations):
        yield "The model has a state, which its calls update: that of one @p@ is its own."
    where = "inside" if weights.file is None else f"in the file {weights.file}, which is mapped into memory"
    yield f"Its weights are {where}: {weights.packed.size:,} bytes."


def _comment(text: str) -> str:
    return text.replace("*/", "* /").replace("\n", " ")


def _open(code: Code, signature: Signature, weights: Weights, has_team: bool) -> str:
    packed = weights.packed
    mutated = {weight.name for weight in signature.weights if weight.mutated}
    tests = " && ".join(_feature_tests(code))
    cpu = ""
    if tests:
        why = f"lacks what the code needs, which was compiled for {code.cpu}"
        cpu = f'  if (!({tests}))\n    return @p@_fail(model, "this CPU", "{why}");\n'
    found = [f'dlsym(libgomp, "{name}")' for name in LIBGOMP]
    team = _TEAM.replace("@FOUND@", " && ".join(found)).replace("@FUNCTIONS@", ", ".join(found)) if has_team else ""
    locate = "  data = @p@_code_weights();\n"
    if weights.file is not None:
        locate = _MAP.replace("@FILE_SIZE@", str(64 + packed.size)).replace("@DIGEST@", packed.digest)
    holes = {
        "FROM": "" if weights.file is None else "; path: that of its weights",
        "PARAMETER": "" if weights.file is None else ", const char *path",
        "CPU": cpu,
        "TEAM": team,
        "LOCATE": locate,
        "STARTS": "".join(f"{start}, " for start in packed.starts),
        "SIZES": "".join(f"{size}, " for size in packed.sizes),
        "UPDATED": "".join(f"{int(name in mutated)}, " for name in packed.names),
        "WEIGHT_COUNT": str(len(packed.names)),
        "PREPARED_COUNT": str(len(code.prepared)),
        "PREPARE": _prepare(code, packed.names),
    }
    return _filled(_OPEN, holes)


def _feature_tests(code: Code) -> Iterator[str]:
    """Conditions in C, all of which hold on a CPU that has what the code needs."""
    if code.machine != "aarch64":
        yield from (f'__builtin_cpu_supports("{name}")' for name in _TESTED if name in code.required)
        if "amx-tile" in code.required:
            yield f"syscall({ARCH_PRCTL}, {ARCH_REQ_XCOMP_PERM}, {TILE_DATA}) == 0"
        return
    for word in (HWCAP, HWCAP2):
        found = [bits for name, (where, bits) in AARCH64_BITS.items() if name in code.required and where == word]
        wanted = functools.reduce(operator.or_, found, 0)
        if wanted:
            yield f"(getauxval({word}) & {wanted:#x}) == {wanted:#x}"


def _prepare(code: Code, names: Sequence[str]) -> str:
    """Computes what depends on weights alone."""
    if code.prepare is None:
        return ""
    sizes = ", ".join(str(max(1, byte_size(kind))) for kind in code.prepared)
    lines = [
        f"  static const size_t lengths[] = {{{sizes}}};",
        "  for (int number = 0; number < @PREPARED_COUNT@; ++number)",
        "    if (!(model->prepared[number] = @p@_allocate(lengths[number])))",
        '      return @p@_fail(model, "memory", "there is not enough");',
        f"  int64_t slots[{code.prepare.slots} + 1];",
    ]
    first = code.prepare.parameter_slots()
    for slot, source in zip(first, code.prepare_sources, strict=False):
        lines.append(f"  slots[{slot}] = (int64_t)(intptr_t)model->weights[{names.index(source.name)}];")
    for number, slot in enumerate(first[len(code.prepare_sources) :]):
        lines.append(f"  slots[{slot}] = (int64_t)(intptr_t)model->prepared[{number}];")
    lines.append("  @p@_code_prepare(slots);")
    for number in code.unread:
        lines += [f"  free(model->prepared[{number}]); /* the code takes its address, and does not look there */"]
        lines += [f"  model->prepared[{number}] = @p@_allocate(0);"]
    return "\n".join(lines).replace("@PREPARED_COUNT@", str(len(code.prepared))) + "\n"
