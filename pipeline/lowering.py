"""From a Program to code: the passes, the groups, the kernels, the target.

The pipelines are flat lists of passes, to be read from top to bottom.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from pipeline import targets, timing
from pipeline.fusion_rules.rules import FusionRules, lend
from pipeline.fusions import lender
from pipeline.mlir import ir
from pipeline.options import Options
from pipeline.passmanager.pass_pipeline import PassPipeline, recorded, watched
from pipeline.program import Dump, Program
from pipeline.runtime.device.device_code import DeviceCode
from pipeline.runtime.interface.code import Code

if TYPE_CHECKING:
    from pipeline.tuning.tuner import Tuner

#: linalg as imported → the same with fewer ops, in which what traps is checked.
CLEAN_UP = """
    place-barriers,
    func.func(fold-unit-transposes),
    func.func(convert-elementwise-to-linalg, normalize-linalg),
    inline-constant-regions,
    remove-unused-results,
    guard-traps,
    lower-tm-tensor,
    fold-batch-broadcasts,
    canonicalize,
    cse,
    split-invariants,
    specialize-windows,
    drop-unread-fills,
    narrow-comparisons,
    cse,
    merge-nested-reductions
"""

#: What the target has chosen about quantized weights → linalg with folded norms and joined products.
SIMPLIFY = """
    merge-summed-products,
    fold-batch-norm,
    merge-parallel-convs,
    merge-linears,
    fold-scale-shift-forward,
    separate-bias,
    merge-scale-shifts,
    fuse-horizontal-contractions
"""

#: What the target has chosen the layouts for → linalg in which weights are prepared.
PREPARE = """
    func.func(refback-generalize-tensor-pad, refback-generalize-tensor-concat, math-expand-ops{ops=fpowi}),
    canonicalize,
    cse,
    hoist-to-prepare,
    canonicalize,
    cse
"""

#: What moves into branches and out of them, and out of loops, so that fusion and loops find it in its place.
REGIONS = """
    remove-unused-iter-args,
    scalarize-unit-tensors,
    fold-integer-ranges,
    canonicalize,
    uplift-while-to-for,
    fold-integer-ranges,
    gathers-to-slices,
    fold-slices-of-concats,
    rematerialize-iota,
    canonicalize,
    cse,
    inline-constant-regions,
    merge-equal-conditions,
    hoist-common-ops,
    hoist-loop-invariants,
    sink-into-branches,
    sink-consumers-into-branches,
    branches-to-selects,
    canonicalize,
    cse,
    expand-tensor-selects
"""

#: The user's own groups, then: what runs once per element becomes one op, by a table of fusion rules.
FUSE = """
    {custom}
    generalize-products,
    canonicalize,
    fold-unit-reshapes,
    propagate-reshapes,
    canonicalize,
    fold-unit-reshapes,
    propagate-reshapes,
    canonicalize,
    fold-unit-reshapes,
    hoist-gathers,
    canonicalize,
    assign-targets{{rules={rules}}},
    fuse-elementwise{{rules={rules}}},
    drop-broadcast-loops,
    canonicalize,
    gathers-to-slices,
    cse
"""

#: Which ops become a kernel, by a table of fusion rules.
GROUP = "form-groups{{rules={rules}}}, sink-slices-into-groups"

#: What only told the passes before what to do goes; kernels take the tensors whose slices they read.
AFTER_GROUPS = "fuse-siblings, erase-barriers"

#: A function for each kernel.
OUTLINE = "outline-kernels"


def lower(
    program: Program,
    target: targets.Target,
    rules: str | FusionRules,
    options: Options,
    dump: Dump,
    tuner: Tuner | None = None,
    store: targets.KernelStore | None = None,
) -> Code | DeviceCode:
    """From a Program to code; `dump` sees the stages on the way, `tuner` chooses schedules in place of analysis.

    Args:
        rules: what becomes one kernel; a table, or what `load_rules` finds it by.
        store: what has the code of kernels, and gets it; without one all are compiled.
    """
    module = program.module
    with module.context, ir.Location.unknown():
        _run(module, options, options.passes.get("linalg", ""))
        with timing.stage("simplify"):
            chosen = (target.quantized, SIMPLIFY, target.contractions, target.layouts)
            _run(module, options, CLEAN_UP, *chosen, PREPARE, REGIONS)
        with contextlib.ExitStack() as lent, timing.stage("fuse"):
            table = lent.enter_context(lend(rules))
            fusions = [lent.enter_context(lender.lend(fusion)) for fusion in options.fusions]
            custom = "".join(f"fuse-into{{fusion={name}}}," for name in fusions)
            _run(module, options, FUSE.format(rules=table, custom=custom), GROUP.format(rules=table))
        _run(module, options, AFTER_GROUPS)
        _run(module, options, options.passes.get("fused", ""))
        dump("fused", module)
        with timing.stage("outline"):
            _run(module, options, OUTLINE)
        _run(module, options, options.passes.get("kernels", ""))
        if tuner is not None:
            with recorded(), watched():  # what is measured
                tuner.run(module)
        with timing.stage("outline"):
            _run(module, options, target.kernel_passes())
        dump("kernels", module)
        with timing.stage("target"):
            return target.compile(module, dump) if store is None else target.compile_sharing(module, dump, store)


def _run(module: ir.Module, options: Options, *pipelines: str) -> None:
    """Runs pipelines one after the other as one: the IR is verified once."""
    steps = [step for pipeline in pipelines if pipeline for step in PassPipeline.parse(pipeline).steps]
    if steps:
        PassPipeline(tuple(steps)).run(module, disable=frozenset(options.disable))
