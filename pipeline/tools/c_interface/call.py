"""The C of one call: tensors are checked, slots filled, results and what is updated handed out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipeline.runtime.call.slot_layout import result_types
from pipeline.runtime.call.symbolic_sizes import names as symbols_of
from pipeline.runtime.interface.code import Code
from pipeline.runtime.interface.signature import DTYPE_BYTES, Mutation, Signature, TensorType
from pipeline.tools.c_interface.sizes import FLOOR, in_c, symbol

#: DLPack's codes of dtypes.
_CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "complex": 5, "bool": 6, "float8_e4m3fn": 10, "float8_e5m2": 12}


@dataclass(frozen=True)
class Output:
    """A tensor that a call writes for its caller.

    Attributes:
        name: its name in C.
        index: the number of the result of the code.
        type: as it lies in memory.
        is_allocated: whether the code allocates it, since its sizes are known after the call alone.
    """

    name: str
    index: int
    type: TensorType
    is_allocated: bool


def c_of_call(
    code: Code,
    signature: Signature,
    weights: Sequence[str],
    inputs: Mapping[int, str],
    outputs: Sequence[Output],
    has_team: bool,
) -> str:
    """The function `@p@_run`, and what it needs."""
    parameters = ["@p@ *model"]
    parameters += [
        f"int64_t {name}" if signature.arguments[number].type is None else f"const DLTensor *{name}"
        for number, name in inputs.items()
    ]
    parameters += [f"DLTensor *{output.name}" for output in outputs]
    body = [
        *_checks(signature, inputs, outputs),
        f"int64_t slots[{code.main.slots + 1}], status = 0;",
        *_arguments(code, signature, weights, inputs, has_team),
        *_results(code, signature, weights, inputs, outputs),
    ]
    lines = "\n".join(f"  {line}" for line in body)
    messages = "".join(f"    {_string(message)},\n" for message in code.checks)
    checks = f"\nstatic const char *const @p@_checks[] = {{\n{messages}}};\n" if code.checks else ""
    return (
        f"{FLOOR}{checks}\n/* Runs the model. */\nstatic inline int @p@_run({', '.join(parameters)}) {{\n{lines}\n}}\n"
    )


def _checks(signature: Signature, inputs: Mapping[int, str], outputs: Sequence[Output]) -> Iterator[str]:
    """Dtypes, shapes and layouts; then sizes that are symbols; then conditions on them."""
    for number, name in inputs.items():
        kind = signature.arguments[number].type
        if kind is not None:
            yield _check(name, kind, signature.arguments[number].name)
    yield from _symbols(signature, inputs)
    for output in outputs:
        if not output.is_allocated:
            yield _check(output.name, output.type, output.name)
            continue
        yield f"if (!{output.name} || !{output.name}->shape)"
        yield f'  return @p@_fail(model, "{output.name}", "has no room for a shape");'
    placed = [(name, signature.arguments[number].type) for number, name in inputs.items()]
    placed += [(output.name, output.type) for output in outputs if not output.is_allocated]
    for name, kind in placed:  # room for all of them first: it moves as it grows
        if kind is not None and any(not isinstance(size, int) or size == 0 for size in kind.shape):
            yield f"if (@p@_room(model, {name})) return -1;"


def _check(name: str, kind: TensorType, title: str) -> str:
    sizes = "".join(f"{size if isinstance(size, int) else -1}, " for size in kind.shape)
    bits = 8 * DTYPE_BYTES[kind.dtype]
    return (
        f"{{ static const int64_t expected[] = {{{sizes}0}};\n"
        f"    if (@p@_check(model, {_string(title)}, {name}, {_string(str(kind))}, {_code_of(kind)}, {bits}, "
        f"{len(kind.shape)}, expected)) return -1; }}"
    )


def _code_of(kind: TensorType) -> int:
    return _CODES.get(kind.dtype) or _CODES["bfloat" if kind.dtype == "bfloat16" else kind.dtype.rstrip("0123456789")]


def _symbols(signature: Signature, inputs: Mapping[int, str]) -> Iterator[str]:
    """What the symbols of sizes are, and whether all sizes and conditions hold; as `runtime/call/arguments` does it."""
    known: set[str] = set()
    composed: list[tuple[str, str, str]] = []
    for number, name in inputs.items():
        argument = signature.arguments[number]
        places = [(name, f"argument {argument.name}", str(argument.value))]
        if argument.type is not None:
            places = [
                (f"{name}->shape[{dim}]", f"argument {argument.name}: dimension {dim}", size)
                for dim, size in enumerate(argument.type.shape)
                if isinstance(size, str)
            ]
        for value, what, wanted in places:
            if not wanted.isidentifier():
                composed.append((value, what, wanted))
            elif wanted not in known:
                known.add(wanted)
                yield f"int64_t {symbol(wanted)} = {value};"
            else:
                yield _unless(f"{value} == {symbol(wanted)}", value, what, f"{wanted} as elsewhere")
    for value, _, wanted in composed:
        unknown = symbols_of(wanted) - known
        if len(unknown) == 1:
            (name,) = unknown
            known.add(name)
            yield f"int64_t {symbol(name)} = 1;"
            yield f"{{ int64_t first = {in_c(wanted)}; {symbol(name)} = 2; int64_t second = {in_c(wanted)};"
            yield f"  {symbol(name)} = second == first ? 1 : @p@_div({value} - first, second - first) + 1; }}"
    for name, low, high in signature.ranges:
        if name in known:
            held = f"{symbol(name)} >= INT64_C({low}) && {symbol(name)} <= INT64_C({high})"
            yield _unless(held, symbol(name), f"the size {name}", f"{low} to {high}")
    for value, what, wanted in composed:
        yield _unless(f"{value} == {in_c(wanted)}", value, what, wanted)
    for guard in signature.guards:
        first = min(symbols_of(guard.condition), default=None)
        if first is not None:
            text = f"sizes with {guard.condition}, for which {guard.line} was captured"
            yield _unless(in_c(guard.condition), symbol(first), f"the size {first}", text)
    for name in sorted(known):
        yield f"(void){symbol(name)};"


def _unless(condition: str, value: str, what: str, wanted: str) -> str:
    return f"if (!({condition})) return @p@_fail_size(model, {_string(what)}, {value}, {_string(wanted)});"


def _arguments(
    code: Code, signature: Signature, weights: Sequence[str], inputs: Mapping[int, str], has_team: bool
) -> Iterator[str]:
    """Fills the slots of what the code takes."""
    for source, slot, value in zip(code.main_sources, code.main.parameter_slots(), code.main.parameters, strict=False):
        if source.kind == "argument" and value.shape is None:
            yield f"slots[{slot}] = {inputs[source.index]};"
        elif source.kind == "argument":
            name = inputs[source.index]
            yield f"if (@p@_place(model, {name}, &slots[{slot}])) return -1;"
            for offset, dim in enumerate(value.dynamic_dims, 1):
                yield f"slots[{slot + offset}] = {name}->shape[{dim}];"
        elif source.kind == "weight":
            yield f"slots[{slot}] = (int64_t)(intptr_t)model->weights[{weights.index(source.name)}];"
        elif source.kind == "prepared":
            yield f"slots[{slot}] = (int64_t)(intptr_t)model->prepared[{source.index}];"
        elif source.kind == "status":
            yield f"slots[{slot}] = (int64_t)(intptr_t)&status;"
        elif source.kind == "seed":
            yield f"slots[{slot}] = (int64_t)model->seed++;"
        elif source.kind == "workspace":
            size = f"(size_t){code.workspace}"
            if has_team and code.thread_bytes:
                yield "int32_t team = model->threads > 0 ? model->threads : (int32_t)sysconf(_SC_NPROCESSORS_ONLN);"
                size += f" + (size_t){code.thread_bytes} * (size_t)(team > 1 ? team - 1 : 0)"
            yield f"if (@p@_reserve(model, &model->workspace, &model->workspace_size, {size})) return -1;"
            yield f"slots[{slot}] = (int64_t)(intptr_t)model->workspace;"
            yield f"slots[{slot + 1}] = (int64_t)model->workspace_size;"
    if has_team:
        yield "@p@_code_set_threads(model->threads > 0 ? model->threads : 0);"


def _results(
    code: Code,
    signature: Signature,
    weights: Sequence[str],
    inputs: Mapping[int, str],
    outputs: Sequence[Output],
) -> Iterator[str]:
    """Runs the code, and brings each result to all that want it."""
    types = result_types(signature, len(code.main.where))
    places = iter(code.main.parameter_slots()[len(code.main_sources) :])
    returned = iter(code.main.result_slots())
    before: list[str] = []
    after: list[str] = []
    released: list[str] = []
    kept: list[int] = []
    allocations: list[int] = []
    for index, where in enumerate(code.main.where):
        takers = [output for output in outputs if output.index == index]
        updates = [mutation for mutation in signature.mutations if mutation.result == index]
        if where == "parameter":
            kind = types[index]
            assert kind is not None
            slot = next(places)
            if takers:
                before.append(f"if (@p@_place(model, {takers[0].name}, &slots[{slot}])) return -1;")
            else:
                kept.append(index)
                before.append(f"slots[{slot}] = (int64_t)(intptr_t)kept_{index};")
                released.append(f"free(kept_{index});")
            source, size = f"(void *)(intptr_t)slots[{slot}]", str(_size(kind))
            copies = [f"memcpy(@p@_data({output.name}), {source}, {size});" for output in takers[1:]]
            copies += [f"memcpy({_updated(mutation, weights, inputs)}, {source}, {size});" for mutation in updates]
            after[:0] = copies  # before what hands out memory, which may fail
        elif where == "result":
            slot = next(returned)
            allocated = types[index]
            if allocated is None:
                after += [f"*(int64_t *)@p@_data({output.name}) = slots[{slot}];" for output in takers]
                continue
            after += _handed_out(slot, allocated, takers, updates, weights, inputs, allocations)
            goes = f"slots[{slot}] != slots[{slot + 1}]" if takers else "1"
            is_first = f"!({_is_taken(slot, allocations)})"
            released.append(f"if ({is_first} && {goes}) free((void *)(intptr_t)slots[{slot}]);")
            allocations.append(slot)
    yield from _kept(kept, [types[index] for index in kept])
    yield from before
    yield "@p@_code_main(slots);"
    if code.checks:
        yield "if (status) {"
        yield from (f"  free(kept_{index});" for index in kept)
        for number, slot in enumerate(allocations):
            yield f"  if (!({_is_taken(slot, allocations[:number])})) free((void *)(intptr_t)slots[{slot}]);"
        yield '  return @p@_fail(model, "@p@", @p@_checks[status - 1]);'
        yield "}"
    else:
        yield "(void)status;"
    yield from after
    yield from released  # results may share memory
    yield "return 0;"


def _kept(numbers: Sequence[int], kinds: Sequence[TensorType | None]) -> Iterator[str]:
    """Memory for results that only update something."""
    for number, kind in zip(numbers, kinds, strict=True):
        assert kind is not None
        yield f"void *kept_{number} = @p@_allocate({_size(kind)});"
    if numbers:
        yield f"if ({' || '.join(f'!kept_{number}' for number in numbers)}) {{"
        yield from (f"  free(kept_{number});" for number in numbers)
        yield '  return @p@_fail(model, "memory", "there is not enough");'
        yield "}"


def _handed_out(
    slot: int,
    kind: TensorType,
    takers: Sequence[Output],
    updates: Sequence[Mutation],
    weights: Sequence[str],
    inputs: Mapping[int, str],
    before: Sequence[int],
) -> Iterator[str]:
    """What the code has allocated: its sizes are in the slots, its memory is the caller's from now on."""
    is_taken = _is_taken(slot, before)
    bits, rank = 8 * DTYPE_BYTES[kind.dtype], len(kind.shape)
    length = " * ".join([f"(size_t){bits // 8}", *(f"(size_t)slots[{slot + 3 + dim}]" for dim in range(rank))])
    for mutation in updates:
        yield f"memcpy({_updated(mutation, weights, inputs)}, (void *)(intptr_t)slots[{slot + 1}], {length});"
    for output in takers:
        arguments = f"model, {output.name}, &slots[{slot}], {is_taken}, {_code_of(kind)}, {bits}, {rank}"
        yield f"if (@p@_hand_out({arguments})) return -1;"
        is_taken = "1"


def _is_taken(slot: int, before: Sequence[int]) -> str:
    """Whether an earlier result lies in the same allocation."""
    return " || ".join(f"slots[{slot}] == slots[{other}]" for other in before) or "0"


def _updated(mutation: Mutation, weights: Sequence[str], inputs: Mapping[int, str]) -> str:
    """Where the new value of an argument or a weight goes."""
    if mutation.argument is not None:
        return f"@p@_data({inputs[mutation.argument]})"
    return f"model->weights[{weights.index(str(mutation.weight))}]"


def _size(kind: TensorType) -> int:
    """How many bytes a tensor of known size takes."""
    size = DTYPE_BYTES[kind.dtype]
    for extent in kind.shape:
        size *= int(extent)
    return size


def _string(text: str) -> str:
    """A string of C."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
