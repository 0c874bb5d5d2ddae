"""compile(): the way of a model through the house, a stage a line.

MLIR and LLVM are loaded when something is compiled: what the disk cache has is taken without them.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline import compile_cache, gc_pause, interrupts, progress, targets, timing
from pipeline.compile_cache import KernelCache, Outcome
from pipeline.errors import LoweringError, OptionError, PipelineError, UnsupportedOpError, UnsupportedTypeError
from pipeline.frontend.capture.file_kinds import MLIR_FILES
from pipeline.frontend.capture.uneven_groups import uneven_indices
from pipeline.frontend.mlir_formats.reading import inner_bytecode
from pipeline.fusion_rules.rules import FusionRules, load_rules
from pipeline.fusions import python_functions
from pipeline.ir.weight_names import matches
from pipeline.options import WEIGHT_BITS, Options
from pipeline.program import Program, ProgramSource
from pipeline.remarks import Remark, collect, dropped, note, repeat
from pipeline.runtime.call.array_libraries import numpy_library, torch_library
from pipeline.runtime.device.device_code import DeviceCode
from pipeline.runtime.executable import Executable
from pipeline.runtime.loading import make_executable
from pipeline.runtime.weights.weight_source import Rebound, WeightSource
from pipeline.shared_cache import TwoLevels, open_caches
from pipeline.stage_texts import KeptStages, Observer, StageTexts

if TYPE_CHECKING:
    from pipeline.debug.checked import Checker
    from pipeline.report.recording import Recording
    from pipeline.tuning.tuner import Tuner

STAGES = ("torch", "linalg", "fused", "kernels", "llvm")


def compile(
    model: Any,
    args: tuple[Any, ...] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    observer: Observer | None = None,
    assembly: bool = False,
    linked: bool = False,
    **options: Any,
) -> Executable:
    """Compiles a model to an executable.

    Args:
        model: an nn.Module, a function, torch.jit.ScriptModule, torch.export.ExportedProgram, the path of a `.pt2` or
            TorchScript archive, of an ONNX file or of one of MLIR (linalg, StableHLO, TOSA), MLIR as text, bytecode or
            module, an ONNX ModelProto, or what `jax.export` gives; see docs/formats.md.
        args, kwargs: example arguments; their shapes and dtypes are compiled in, and their constants, which calls may
            leave out. A tensor stands for a tuple of one. For MLIR no args, and as kwargs the arrays of arguments that
            are marked `pipeline.weight`, by their names: they are weights, and calls leave them out.
        dynamic_shapes: the dimensions that may change, as torch.export takes them.
        observer: is called with the name and the MLIR text of each stage as it is reached.
        assembly: adds the stage `asm`, the text of the machine code.
        linked: makes the code one object file that a linker can take.
        options: see `pipeline.options.Options`.

    Raises:
        CaptureError: torch cannot capture the model.
        UnsupportedOpError: ops of the model cannot be lowered; lists all of them with their source lines.
        OptionError: an option or its value is unknown.
        CompileError: a pass or the code generator failed.
    """
    chosen = Options.create(options)
    target = target_for(chosen, assembly, linked)
    with gc_pause.left(), interrupts.kept(), progress.reported(chosen.verbose):
        source = captured_source(model, args, kwargs, dynamic_shapes, chosen)
        if chosen.keep:
            chosen = with_kept_weights(chosen, source.tensors())
            target = target_for(chosen, assembly, linked)
        return compile_source(source, chosen, target, observer)


def target_for(options: Options, assembly: bool = False, linked: bool = False) -> targets.Target:
    """The target that the options name; raises `OptionError` for what is wrong with them, before the long work."""
    threads, rounds = options.num_threads != 1, options.precision == "bf16"
    bits, group = WEIGHT_BITS[options.weights], options.group or 0
    data = options.activations != "f32"
    form = targets.CodeForm(
        assembly=assembly,
        linked=linked,
        profile=options.profile,
        parallel=threads,
        rounds=rounds,
        weight_bits=bits,
        weight_group=group,
        weight_zero_points=options.zero_points,
        quantizes_data=data,
        keep=options.keep,
        winograd=options.winograd,
    )
    target = targets.create(options.target, options.cpu, frozenset(options.disable), form)
    if options.tune is not None and not target.runs_here:
        raise OptionError("tune: this machine cannot run the code, so it cannot measure it: leave tune out")
    if options.disable or options.passes:
        _check_passes(options)
    _rules(options, target)
    return target


def with_kept_weights(options: Options, tensors: Mapping[str, Any]) -> Options:
    """The options with all names of what `options.keep` keeps: a weight may have several.

    Raises:
        OptionError: a pattern matches no weight.
    """
    kept = []
    for pattern in options.keep:
        found = {id(tensor) for name, tensor in tensors.items() if matches(name, pattern)}
        if not found:
            near = difflib.get_close_matches(pattern, tensors, 3, 0.3) or sorted(tensors)[:3]
            raise OptionError(f"keep: no weight is called {pattern!r}; there are {', '.join(near)}")
        kept += [pattern, *(name for name, tensor in tensors.items() if id(tensor) in found)]
    return replace(options, keep=tuple(dict.fromkeys(kept)))


def _check_passes(options: Options) -> None:
    """Raises `OptionError` if the options name a pass that there is not, or leave out one that has to run."""
    from pipeline.passmanager import registry
    from pipeline.passmanager.pass_pipeline import PassPipeline

    for name in options.disable:
        if not registry.is_pass(name):
            raise registry.unknown_pass(name)
        if registry.is_mandatory(name):
            raise OptionError(f"disable: '{name}' has to run: without it models crash, are wrong or cannot be lowered")
    for pipeline in options.passes.values():
        PassPipeline.parse(pipeline)


def compile_source(
    source: ProgramSource, options: Options, target: targets.Target, observer: Observer | None = None
) -> Executable:
    """Compiles what was captured, or takes the outcome from the disk cache; torch runs what cannot be lowered.

    Raises:
        UnsupportedOpError: ops cannot be lowered, and `options.fallback` is `error`.
    """
    with interrupts.kept(), progress.reported(options.verbose):
        executable = _compile_or_cut(source, options, target, observer)
    executable.name, executable.options = source.name, options.unusual()
    return executable


def _compile_or_cut(
    source: ProgramSource, options: Options, target: targets.Target, observer: Observer | None
) -> Executable:
    try:
        return _compile_whole(source, options, target, observer)
    except (UnsupportedOpError, UnsupportedTypeError, LoweringError) as error:
        if options.fallback == "error" or not target.runs_here:
            raise
        from pipeline.frontend.fallback.build import compile_parts

        parts = replace(options, fallback="error")
        return compile_parts(source, lambda part: _compile_whole(part, parts, target, observer), error, options.refresh)


def _compile_whole(
    source: ProgramSource, options: Options, target: targets.Target, observer: Observer | None
) -> Executable:
    """Likewise, where all ops can be lowered."""
    cache = compile_cache.cache_for(options)
    key = None
    said: list[Remark] = []  # of the cache: no part of the outcome
    if cache is not None:
        with timing.stage("look in the cache"), dropped(), collect() as said:
            key = _key(source, options, target)
            kept = None if key is None else cache.get(key)
        if kept is not None:
            return _take(Outcome.from_bytes(kept), source, options, target, observer)
    from pipeline.lowering import lower  # loads MLIR
    from pipeline.mlir import shared_context
    from pipeline.passmanager.pass_pipeline import PassPipeline, recorded, watched

    stages = KeptStages(observer, target.late)
    looked_at = observer is not None or options.check
    store = None if looked_at else compile_cache.kernels_of(cache)
    with gc_pause.left(), shared_context(), collect() as remarks:
        with timing.stage("import"):
            program = source.program(stages)
        tuner = _tuner(options)
        checker = _checker(program, source) if options.check else None
        with recorded() as steps, watched(*filter(None, [checker])):
            code = lower(program, target, options.fusion_rules or target.fusion_rules, options, stages, tuner, store)
        if checker is not None and (target.runs_here or isinstance(code, DeviceCode)):
            checker.check_code(code, stages.texts)
        passes = str(PassPipeline(tuple(steps)))
        outcome = Outcome(code, program.signature, program.weights_library, tuple(remarks), stages.texts, passes)
        for remark in said:
            repeat(remark)
        tuned = tuner is None or tuner.complete
        if cache is not None:
            _keep(cache, key if tuned and _is_known(program, source) else None, outcome, store)
    return _executable(outcome, Rebound.with_made(source, program.weights), tuple(remarks), source, options, target)


def _keep(cache: TwoLevels, key: str | None, outcome: Outcome, store: KernelCache | None) -> None:
    """Writes an outcome to the caches, if it has a key, and the code of its kernels."""
    with timing.stage("write to the cache"):
        problem = cache.put(key, b"" if key is None else outcome.to_bytes(), {} if store is None else store.new)
    if problem is not None:
        note("cache", "missed", "builtin.module", f"the outcome is not kept: {problem}")


def _checker(program: Program, source: ProgramSource) -> Checker:
    """What interprets a program after each pass, on the arguments that it was captured with."""
    from pipeline.debug.checked import Checker
    from pipeline.debug.program_call import program_call

    return Checker(program_call(program, source.example()))


def _key(source: ProgramSource, options: Options, target: targets.Target) -> str | None:
    fingerprint = source.fingerprint()
    uneven = uneven_indices(source.tensors())  # what code is made goes by that, too
    return None if fingerprint is None else cache_key("\n".join([fingerprint, *uneven]), options, target)


def cache_key(fingerprint: str, options: Options, target: targets.Target) -> str:
    """The name in the disk cache of what is made with these options of what has this fingerprint."""
    return compile_cache.key_of(fingerprint, options, [*target.fingerprint(), repr(_rules(options, target))])


def _is_known(program: Program, source: ProgramSource) -> bool:
    """Whether all weights can be found again without an import: capture makes constants of its own at times."""
    live = source.tensors()
    return all(live.get(name) is tensor for name, tensor in program.weights.items())


def _timed(source: ProgramSource, options: Options) -> Callable[[], Executable] | None:
    """Compiles the same once more, into code that times its kernels; None where the code does so already."""
    if options.profile:
        return None
    timed = replace(options, profile=True)
    return lambda: compile_source(source, timed, target_for(timed))


def _recorded(source: ProgramSource, options: Options) -> Callable[[], Recording]:
    """Compiles the same once more, and writes down what the passes do."""

    def recorded() -> Recording:
        from pipeline.report.recorder.record import record  # loads MLIR

        target = target_for(options)
        with gc_pause.left(), interrupts.kept(), progress.reported(options.verbose):
            return record(source, target, options.fusion_rules or target.fusion_rules, options, _tuner)

    return recorded


def _take(
    outcome: Outcome, source: ProgramSource, options: Options, target: targets.Target, observer: Observer | None
) -> Executable:
    """The executable of an outcome that the cache has, with the live weights of the model."""
    if observer is not None:
        for stage, text_of_stage in _stage_texts(outcome, target).items():
            observer(stage, text_of_stage)
    for remark in outcome.remarks:
        repeat(remark)
    return _executable(outcome, source, outcome.remarks, source, options, target)


def _stage_texts(outcome: Outcome, target: targets.Target) -> StageTexts:
    return StageTexts(outcome.stages, target.late, lambda: target.late_text(outcome.stages["kernels"]))


def _executable(
    outcome: Outcome,
    weights: WeightSource,
    remarks: tuple[Remark, ...],
    source: ProgramSource,
    options: Options,
    target: targets.Target,
) -> Executable:
    with timing.stage("load and prepare weights"):
        return make_executable(
            outcome.code,
            outcome.signature,
            weights,
            numpy_library() if outcome.weights_library == "numpy" else torch_library(),
            remarks,
            _stage_texts(outcome, target),
            outcome.passes,
            timed=_timed(source, options),
            recorded=_recorded(source, options),
            functions=python_functions(options.fusions),
            num_threads=options.num_threads,
            refresh=options.refresh,
        )


def _tuner(options: Options) -> Tuner | None:
    """What chooses the schedules of kernels; None where analysis does."""
    if options.tune is None:
        return None
    from pipeline.tuning.tuner import Tuner

    cache = open_caches() if options.cache else None
    return Tuner(options, options.tune, None if cache is None or cache.is_off else cache)


def _rules(options: Options, target: targets.Target) -> FusionRules:
    """The table of fusion rules; raises `OptionError` if it is none."""
    given = options.fusion_rules or target.fusion_rules
    return given if isinstance(given, FusionRules) else load_rules(given)


def captured_source(
    model: Any,
    args: tuple[Any, ...] | None,
    kwargs: Mapping[str, Any] | None,
    dynamic_shapes: Any,
    options: Options,
) -> ProgramSource:
    """A model as torch captures it, or MLIR as it is; the arguments are those of `compile`."""
    mlir = _mlir_source(model)
    if mlir is not None:
        if dynamic_shapes is not None:
            raise PipelineError("MLIR takes no dynamic_shapes: its own signature says what it takes")
        from pipeline.frontend.importer.mlir_text import MlirSource

        return MlirSource(*mlir, dict(kwargs or {}))
    from pipeline.frontend.sources import exported_source

    with timing.stage("torch.export"):
        return exported_source(model, args, kwargs, dynamic_shapes, options.capture, options.random)


def _mlir_source(model: Any) -> tuple[str | bytes, str] | None:
    """(text or bytecode, name) if the model is MLIR: a module, a path, text, bytes, or what `jax.export` gives."""
    if type(model).__module__.startswith("torch_mlir."):
        from pipeline.mlir import ir

        if isinstance(model, (ir.Module, ir.Operation)):
            return model.operation.get_asm(enable_debug_info=True), "module"
    if isinstance(getattr(model, "mlir_module_serialized", None), bytes):  # jax.export.Exported
        return model.mlir_module_serialized, str(getattr(model, "fun_name", "module"))
    if isinstance(model, (str, Path)) and str(model).endswith(MLIR_FILES) and "\n" not in str(model):
        return _of_file(Path(model))
    if isinstance(model, bytes):
        bytecode = inner_bytecode(model)
        return None if bytecode is None else (bytecode, "bytecode")
    if isinstance(model, str) and not _names_a_file(model):
        return model, "MLIR text"
    return None


def _of_file(path: Path) -> tuple[str | bytes, str]:
    """What a file of MLIR's has: text, or bytecode."""
    try:
        data = path.read_bytes()
        bytecode = inner_bytecode(data)
        return (data.decode() if bytecode is None else bytecode), str(path)
    except (OSError, UnicodeDecodeError) as error:
        raise PipelineError(f"{path}: cannot be read: {error}") from None


def _names_a_file(text: str) -> bool:
    """Whether a string is a path rather than MLIR: one line without spaces, or one that ends as names of files do."""
    stripped = text.strip()
    return (
        bool(stripped) and "\n" not in stripped and (" " not in stripped or bool(Path(stripped).suffix[1:].isalnum()))
    )
