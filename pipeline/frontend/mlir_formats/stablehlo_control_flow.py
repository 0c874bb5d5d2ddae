"""StableHLO's while, if and case → scf's, with the ops in their regions as they were."""

from __future__ import annotations

from pipeline.mlir import ir, walk_where


def lower_control_flow(module: ir.Module) -> None:
    """Lowers them all, inner ones first."""
    names = {"stablehlo.while": _while, "stablehlo.if": _if, "stablehlo.case": _case}
    for op in reversed(walk_where(module, lambda op: op.name in names)):
        with op.location:
            results = names[op.name](op)
        for old, new in zip(op.results, results, strict=True):
            old.replace_all_uses_with(new)
        op.erase()


def _while(op: ir.Operation) -> list[ir.Value]:
    """while(%a) cond { c } do { d } → scf.while with the condition's value and what it is carried along with."""
    types = [result.type for result in op.results]
    with ir.InsertionPoint(op):
        loop = ir.Operation.create("scf.while", results=types, operands=list(op.operands), regions=2)
    for region, into in zip(op.regions, loop.regions, strict=True):
        region.blocks[0].append_to(into)
    before, after = (region.blocks[0] for region in loop.regions)
    end = _terminator(before)
    with ir.InsertionPoint(end):
        condition = _scalar(end.operands[0])
        ir.Operation.create("scf.condition", operands=[condition, *before.arguments])
    end.erase()
    _yield(after)
    return list(loop.results)


def _if(op: ir.Operation) -> list[ir.Value]:
    with ir.InsertionPoint(op):
        return _branches(op, _scalar(op.operands[0]), [region.blocks[0] for region in op.regions])


def _case(op: ir.Operation) -> list[ir.Value]:
    """case %i { b0 } { b1 } ... → if %i = 0 { b0 } else if %i = 1 { b1 } ... else { the last one }."""
    blocks = [region.blocks[0] for region in op.regions]
    with ir.InsertionPoint(op):
        return _chain(op, _scalar(op.operands[0]), blocks, 0)


def _chain(op: ir.Operation, index: ir.Value, blocks: list[ir.Block], number: int) -> list[ir.Value]:
    kind = index.type
    wanted = ir.Operation.create(
        "arith.constant", results=[kind], attributes={"value": ir.IntegerAttr.get(kind, number)}
    ).result
    is_it = _equal(index, wanted)
    if number + 2 >= len(blocks):
        return _branches(op, is_it, [blocks[number], blocks[-1]])
    types = [result.type for result in op.results]
    branch = ir.Operation.create("scf.if", results=types, operands=[is_it], regions=2)
    blocks[number].append_to(branch.regions[0])
    _yield(branch.regions[0].blocks[0])
    other = ir.Block.create_at_start(branch.regions[1], [])
    with ir.InsertionPoint(other):
        ir.Operation.create("scf.yield", operands=_chain(op, index, blocks, number + 1))
    return list(branch.results)


def _equal(a: ir.Value, b: ir.Value) -> ir.Value:
    equal = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)
    kind = ir.IntegerType.get_signless(1)
    return ir.Operation.create("arith.cmpi", results=[kind], operands=[a, b], attributes={"predicate": equal}).result


def _branches(op: ir.Operation, condition: ir.Value, blocks: list[ir.Block]) -> list[ir.Value]:
    types = [result.type for result in op.results]
    branch = ir.Operation.create("scf.if", results=types, operands=[condition], regions=2)
    for block, region in zip(blocks, branch.regions, strict=True):
        block.append_to(region)
        _yield(region.blocks[0])
    return list(branch.results)


def _yield(block: ir.Block) -> None:
    end = _terminator(block)
    with ir.InsertionPoint(end):
        ir.Operation.create("scf.yield", operands=list(end.operands))
    end.erase()


def _terminator(block: ir.Block) -> ir.Operation:
    return block.operations[len(block.operations) - 1].operation


def _scalar(value: ir.Value) -> ir.Value:
    """The element of a tensor of no dims."""
    kind = ir.RankedTensorType(value.type).element_type
    return ir.Operation.create("tensor.extract", results=[kind], operands=[value]).result
