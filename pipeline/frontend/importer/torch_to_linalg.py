"""torch dialect → linalg on tensors, by torch-mlir's pipelines, and a list of every op that they can't lower."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.errors import CompileError, LoweringError, UnsupportedOpError
from pipeline.frontend.importer.bitcast_lowering import lower_bitcasts
from pipeline.frontend.importer.fourier_lowering import lower_transforms, take_over_transforms
from pipeline.frontend.importer.grouped_products_lowering import lower_grouped_products, take_over_grouped_products
from pipeline.frontend.importer.random_lowering import lower_random, take_over_random
from pipeline.frontend.importer.stop_fusion_lowering import (
    barriers_as_casts,
    put_barriers_on_tensors,
    take_over_barriers,
)
from pipeline.frontend.importer.tap_products_lowering import lower_tap_products, take_over_tap_products
from pipeline.frontend.importer.windows_lowering import lower_windows, take_over_windows
from pipeline.frontend.shapes.held_casts import hold_casts
from pipeline.frontend.shapes.promises import Promises
from pipeline.frontend.views.lower_views import put_views_on_tensors, take_over_views
from pipeline.ir.locations import node_names
from pipeline.ir.rewriting import branch_on_selects
from pipeline.mlir import ir, load_dialects_of, run_pipeline, walk
from pipeline.remarks import source_line

_TO_BACKEND = (
    "builtin.module(func.func(torch-match-quantized-custom-ops),"
    "torchdynamo-export-to-torch-backend-pipeline{ extra-library=})"
)

#: The passes of torch-mlir's torch-backend-to-linalg-on-tensors-backend-pipeline in parts; the last one is `_VERIFY`.
_TO_LINALG = (
    """builtin.module(func.func(
        torch-restructure-non-constant-axes,
        torch-fuse-quantized-ops,
        convert-torch-to-tmtensor{allow-non-finites=true}
    ))""",
    "builtin.module(func.func(canonicalize, convert-torch-to-linalg{allow-non-finites=true}))",
    """builtin.module(
        func.func(canonicalize, convert-torch-to-scf, convert-torch-to-arith, convert-torch-to-tensor),
        convert-torch-conversion-to-mlprogram
    )""",
    """builtin.module(
        func.func(memref-expand, canonicalize, resolve-shaped-type-result-dims, cse),
        torch-func-backend-type-conversion,
        func.func(canonicalize, torch-finalizing-backend-type-conversion)
    )""",
)

#: The name of the resource that hides a true, see `control_flow`.
HIDDEN_TRUE = "pipeline_hidden_true"

_VERIFY = "builtin.module(torch-verify-linalg-on-tensors-backend-contract)"


def lower_to_linalg(
    module: ir.Module, dump: Callable[[str, ir.Module | str], None], promises: Promises
) -> dict[str, int]:
    """Lowers `module` in place; `dump` sees it at the stage `torch`. Sizes are as promised, or checked at the call.

    Returns:
        The least values of symbols that a call needs, by name, beyond those promised.

    Raises:
        UnsupportedOpError: lists every op that can't be lowered, each with its source line.
    """
    imported = module.operation.clone()
    try:
        run_pipeline(module.operation, _TO_BACKEND)
        dump("torch", module)
        imported = module.operation.clone()
        return _lower(module, promises if promises.is_symbolic else None)
    except CompileError as error:
        raise _explain(imported, error) from None


def load_dialects(context: ir.Context) -> None:
    """Loads what lowered modules consist of: the dialects that torch-mlir's passes bring in as they begin."""
    for part in _TO_LINALG:
        load_dialects_of(part, context)


def take_over(module: ir.Module) -> None:
    """Makes ops that torch's passes leave alone of those that are lowered by ours."""
    take_over_barriers(module)
    take_over_grouped_products(module)
    take_over_random(module)
    take_over_tap_products(module)
    take_over_transforms(module)
    take_over_views(module)
    take_over_windows(module)


def _lower(module: ir.Module, promises: Promises | None = None) -> dict[str, int]:
    """From torch's backend form to linalg on tensors, checked by torch-mlir's own contract for that.

    The contract has no arith.select on tensors, which is what a branch that computes nothing folds to.
    """
    lower_bitcasts(module)
    put_barriers_on_tensors(module)
    put_views_on_tensors(module)
    lower_grouped_products(module)
    lower_random(module)
    lower_tap_products(module)
    lower_transforms(module)
    lower_windows(module)
    for part in _TO_LINALG:
        run_pipeline(module.operation, part)
        if promises is not None:
            hold_casts(module)
    raised = promises.keep(module) if promises is not None else {}
    _show_hidden_truth(module)
    branch_on_selects(module.operation)
    with barriers_as_casts(module):
        run_pipeline(module.operation, _VERIFY)
    return raised


def _show_hidden_truth(module: ir.Module) -> None:
    """Makes the true that was hidden from torch-mlir's folders a constant like any other."""
    for constant in walk(module, "arith.constant"):
        if str(constant.attributes["value"]).startswith(f"dense_resource<{HIDDEN_TRUE}"):
            one = ir.IntegerAttr.get(ir.IntegerType.get_signless(64, module.context), 1)
            constant.attributes["value"] = ir.DenseElementsAttr.get_splat(constant.results[0].type, one)


def _explain(module: ir.Operation, error: CompileError) -> LoweringError | UnsupportedOpError:
    """Says which ops fail on their own; if none does, the original error stands."""
    return failing_ops(module) or LoweringError(f"the model could not be lowered to linalg: {error}")


def failing_ops(
    module: ir.Operation, begin: Callable[[ir.Operation], None] = lambda _: None
) -> UnsupportedOpError | None:
    """Lowers each op on its own to find all that fail; `begin` is called with each one before."""
    failures: list[tuple[str, str | None, str]] = []
    nodes: list[str] = []
    reasons: dict[str, str | None] = {}
    for op in leaf_ops(module):
        begin(op)
        alone, key = _isolate(op)
        is_new = key not in reasons
        if is_new:
            reasons[key] = _failure(alone)
        reason = reasons[key]
        if reason is None:
            continue
        nodes += nodes_behind(op)
        if is_new:
            failures.append((op_name(op), source_line(op.location), reason))
    return UnsupportedOpError(failures, nodes) if failures else None


def nodes_behind(op: ir.Operation) -> list[str]:
    """The names of the nodes of the graph that `op` comes from; of the branch or loop that it lies in, if it does."""
    while op.parent.name != "func.func":
        op = op.parent.operation
    return node_names(op.location)


def op_name(op: ir.Operation) -> str:
    """`aten.foo` for both `torch.aten.foo` and `torch.operator "torch.aten.foo"`."""
    name = ir.StringAttr(op.attributes["name"]).value if op.name == "torch.operator" else op.name
    return name.removeprefix("torch.")


def leaf_ops(module: ir.Operation) -> list[ir.Operation]:
    """The ops of torch's that compute, those in branches and loops among them, in order."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        op = op.operation
        if op.name.startswith("torch.") and not op.regions and not _is_plumbing(op):
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _is_plumbing(op: ir.Operation) -> bool:
    """Ops that only carry other ops' arguments, check something that torch-mlir knows, or end a region."""
    if op.name.startswith(("torch.constant.", "torch.prim.", "torch.derefine")):
        return True
    return not op.results and op.name != "torch.operator"


def _isolate(op: ir.Operation) -> tuple[ir.Module, str]:
    """A module with one function around a copy of `op`, and a key that is the same for ops that lower alike."""
    context = op.context
    with context, ir.Location.unknown():
        module = ir.Module.create()
        inner, outer = _plumbing_behind(op)
        ins = [value.type for value in outer]
        outs = [result.type for result in op.results]
        with ir.InsertionPoint(module.body):
            function = ir.Operation.create(
                "func.func",
                regions=1,
                attributes={
                    "sym_name": ir.StringAttr.get("main"),
                    "function_type": ir.TypeAttr.get(ir.FunctionType.get(ins, outs)),
                    "torch.assume_strict_symbolic_shapes": ir.UnitAttr.get(),
                },
            )
        block = ir.Block.create_at_start(function.regions[0], ins)
        known = dict(zip(outer, block.arguments, strict=True))
        with ir.InsertionPoint(block):
            for original in [*inner, op]:
                copy = original.clone()
                for index, operand in enumerate(original.operands):
                    copy.operands[index] = known[operand]
                known.update(zip(original.results, copy.results, strict=True))
            ir.Operation.create("func.return", operands=[known[result] for result in op.results])
    return module, str(module)


def _plumbing_behind(op: ir.Operation) -> tuple[list[ir.Operation], list[ir.Value]]:
    """The constants and lists that feed `op`, in order, and the other values that it takes."""
    inner: list[ir.Operation] = []
    outer: list[ir.Value] = []

    def need(value: ir.Value) -> None:
        owner = value.owner
        producer = owner.operation if not isinstance(owner, ir.Block) else None
        if producer is not None and producer.results and _is_carried(producer):
            if producer not in inner:
                for operand in producer.operands:
                    need(operand)
                inner.append(producer)
        elif value not in outer:
            outer.append(value)

    for operand in op.operands:
        need(operand)
    return inner, outer


def _is_carried(op: ir.Operation) -> bool:
    return not op.regions and op.name.startswith(("torch.constant.", "torch.prim.ListConstruct", "torch.derefine"))


def _failure(module: ir.Module) -> str | None:
    try:
        run_pipeline(module.operation, _TO_BACKEND)
        _lower(module)
    except CompileError as error:
        text = str(error).split("failed: ", 1)[-1].splitlines()[0]
        return text.split(": ", 1)[-1] if text.startswith("loc(") else text
    return None
