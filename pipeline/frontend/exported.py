"""ExportedProgram → Program: what each placeholder and output is, then import and lowering to linalg."""

from __future__ import annotations

from typing import Any

import sympy
import torch
import torch.utils._pytree as torch_pytree
from torch import fx
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind

from pipeline.errors import CaptureError, PipelineError
from pipeline.frontend.graph_passes import simplify
from pipeline.frontend.importer import import_graph
from pipeline.frontend.to_linalg import lower_to_linalg
from pipeline.mlir import context, function, ir
from pipeline.program import Dump, Program
from pipeline.runtime.pytree import LEAF, Tree, leaf_paths
from pipeline.runtime.signature import DTYPE_BYTES, Argument, Mutation, Result, Signature, TensorType, Weight

#: Constants up to this many elements become literals in the IR, where folding sees them.
LITERAL_ELEMENTS = 64


def from_exported(exported: ExportedProgram, parameters: tuple[str, ...], dump: Dump) -> Program:
    """The Program of a functional ExportedProgram; `dump` sees the module after the stages `torch` and `linalg`."""
    graph = exported.graph
    roles = _Roles(exported, parameters)
    signature = roles.signature()
    simplify(graph)
    module = import_graph(graph, context())
    lower_to_linalg(module, dump)
    _mark_arguments(module, roles.sources, {w.name for w in signature.weights if w.mutated})
    dump("linalg", module)
    return Program(module, signature, roles.weights)


def _mark_arguments(module: ir.Module, sources: list[tuple[str, int | str]], mutable: set[str]) -> None:
    main = function(module, "main")
    with module.context:
        marks = []
        for kind, which in sources:
            mark: dict[str, ir.Attribute] = {}
            if isinstance(which, int):
                mark[kind] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), which)
            else:
                mark[kind] = ir.StringAttr.get(which)
                if which in mutable:
                    mark["pipeline.mutable"] = ir.UnitAttr.get()
            marks.append(ir.DictAttr.get(mark))
        main.attributes["arg_attrs"] = ir.ArrayAttr.get(marks)


class _Roles:
    """What each placeholder and output of an exported graph is; erases placeholders that the program doesn't take."""

    def __init__(self, exported: ExportedProgram, parameters: tuple[str, ...]):
        self.exported = exported
        self.graph = exported.graph
        self.parameters = parameters
        self.nodes = {node.name: node for node in self.graph.nodes}
        self.mutated = set(exported.graph_signature.user_inputs_to_mutate.values())
        self.mutated |= set(exported.graph_signature.buffers_to_mutate.values())
        self.sources: list[tuple[str, int | str]] = []
        self.weights: dict[str, Any] = {}
        self.weight_types: list[Weight] = []
        self.arguments: list[Argument] = []
        self.argument_index: dict[str, int] = {}

    def signature(self) -> Signature:
        tree = tree_of(self.exported.call_spec.in_spec)
        paths = iter(argument_paths(tree, self.parameters))
        for spec in self.exported.graph_signature.input_specs:
            if spec.kind == InputKind.USER_INPUT:
                self._argument(spec.arg, next(paths))
            elif spec.kind in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR):
                self._weight(spec)
            else:
                raise CaptureError(
                    f"input {spec.target or spec.arg}: {spec.kind.name.lower()} inputs are not supported"
                )
        results, mutations = self._results()
        return Signature(
            arguments=tuple(self.arguments),
            argument_tree=tree,
            parameters=self.parameters,
            results=results,
            result_tree=tree_of(self.exported.call_spec.out_spec),
            weights=tuple(self.weight_types),
            mutations=mutations,
            ranges=symbol_ranges(self.exported),
        )

    def _argument(self, arg: Any, path: str) -> None:
        index = len(self.arguments)
        node = self.nodes[arg.name]
        self.argument_index[arg.name] = index
        value = node.meta.get("val")
        if isinstance(arg, ConstantArgument) or not isinstance(value, (torch.Tensor, torch.SymInt)):
            if isinstance(value, (torch.SymFloat, torch.SymBool)):
                raise CaptureError(f"argument {path}: dynamic floats and bools are not supported, pass a tensor")
            self.arguments.append(Argument(path, "constant", value=getattr(arg, "value", value)))
            self.graph.erase_node(node)
            return
        if isinstance(value, torch.SymInt):
            self.arguments.append(Argument(path, "int", value=str(value.node.expr)))
        else:
            kind = tensor_type(value, f"argument {path}")
            self.arguments.append(Argument(path, "tensor", kind, mutated=arg.name in self.mutated))
        self.sources.append(("pipeline.argument", index))

    def _weight(self, spec: Any) -> None:
        node = self.nodes[spec.arg.name]
        name = spec.target
        tensors = self.exported.state_dict if name in self.exported.state_dict else self.exported.constants
        tensor = tensors[name]
        mutated = name in self.mutated
        if spec.kind == InputKind.CONSTANT_TENSOR and not mutated and tensor.numel() <= LITERAL_ELEMENTS:
            node.replace_all_uses_with(tensor)
            self.graph.erase_node(node)
            return
        self.weights[name] = tensor
        self.weight_types.append(Weight(name, tensor_type(tensor, f"weight {name}"), mutated))
        self.sources.append(("pipeline.weight", name))

    def _results(self) -> tuple[tuple[Result, ...], tuple[Mutation, ...]]:
        output = next(node for node in self.graph.nodes if node.op == "output")
        order: dict[Any, int] = {}
        results, mutations = [], []
        for spec, value in zip(self.exported.graph_signature.output_specs, output.args[0], strict=True):
            if spec.kind == OutputKind.USER_OUTPUT:
                results.append(self._result(value, order))
            elif spec.kind == OutputKind.USER_INPUT_MUTATION:
                index = order.setdefault(value, len(order))
                mutations.append(Mutation(index, argument=self.argument_index[spec.target]))
            else:
                mutations.append(Mutation(order.setdefault(value, len(order)), weight=spec.target))
        output.args = (tuple(order),)
        return tuple(results), tuple(mutations)

    def _result(self, value: Any, order: dict[Any, int]) -> Result:
        if not isinstance(value, fx.Node):
            return Result("constant", value=_plain(value))
        if value.name in self.argument_index:
            return Result("argument", self.argument_index[value.name])
        meta = value.meta["val"]
        if isinstance(meta, torch.Tensor):
            return Result("computed", order.setdefault(value, len(order)), tensor_type(meta, f"result {value.name}"))
        if isinstance(meta, (int, torch.SymInt)) and not isinstance(meta, bool):
            return Result("computed", order.setdefault(value, len(order)))
        raise CaptureError(f"result {value.name}: a {type(meta).__name__} cannot be returned, return a tensor")


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise CaptureError(f"result {value!r}: only tensors, numbers, strings and None can be returned")


def tensor_type(value: torch.Tensor, what: str) -> TensorType:
    """The type of a (fake) tensor; raises `PipelineError` for a dtype or layout that pipeline doesn't have."""
    dtype = str(value.dtype).removeprefix("torch.")
    if dtype not in DTYPE_BYTES or value.layout != torch.strided:
        kind = dtype if value.layout == torch.strided else str(value.layout).removeprefix("torch.")
        raise PipelineError(f"{what}: {kind} tensors are not supported, use one of {', '.join(DTYPE_BYTES)}")
    if value.device.type not in ("cpu", "meta"):
        raise PipelineError(f"{what}: is on {value.device}, expected cpu")
    return TensorType(dtype, tuple(_size(size) for size in value.shape))


def _size(size: Any) -> int | str:
    if isinstance(size, torch.SymInt):
        expression = size.node.expr
        return int(expression) if expression.is_number else str(expression)
    return int(size)


def symbol_ranges(exported: ExportedProgram) -> tuple[tuple[str, int, int], ...]:
    """(symbol, least, greatest) for every symbol of the program's shapes."""
    ranges = []
    for symbol, bounds in exported.range_constraints.items():
        greatest = 2**63 - 1 if not _finite(bounds.upper) else int(bounds.upper)
        ranges.append((str(symbol), max(0, int(bounds.lower)) if _finite(bounds.lower) else 0, greatest))
    return tuple(ranges)


def _finite(bound: Any) -> bool:
    return isinstance(bound, (int, sympy.Integer))


def argument_paths(tree: Tree, parameters: tuple[str, ...]) -> list[str]:
    """A readable path for each leaf of `(args, kwargs)`."""
    positional, keywords = tree.children
    paths = []
    for index, child in enumerate(positional.children):
        name = parameters[index] if index < len(parameters) else f"args[{index}]"
        paths += leaf_paths(child, name)
    for key, child in zip(keywords.keys, keywords.children, strict=True):
        paths += leaf_paths(child, str(key))
    return paths


def tree_of(spec: torch_pytree.TreeSpec) -> Tree:
    """Torch's TreeSpec as a Tree."""
    if spec.is_leaf():
        return LEAF
    children = tuple(tree_of(child) for child in spec.children())
    kind, keys = spec.type, spec.context
    if kind in (tuple, list):
        return Tree("tuple" if kind is tuple else "list", children)
    if kind is dict:
        return Tree("dict", children, tuple(keys))
    name = f"{kind.__module__}:{kind.__qualname__}"
    if hasattr(kind, "_fields"):
        return Tree("namedtuple", children, tuple(kind._fields), name)
    if kind.__module__ == "torch.return_types":
        return Tree("structseq", children, tuple(kind.__match_args__), f"torch.return_types:{kind.__name__}")
    if issubclass(kind, dict) and kind.__module__ == "collections":
        return Tree("dict", children, tuple(keys), name)
    if isinstance(keys, (list, tuple)) and len(keys) == len(children) and all(isinstance(key, str) for key in keys):
        return Tree("object", children, tuple(keys), name)
    raise PipelineError(
        f"{name}: this container class is not supported among arguments and results, use a dict or tuple"
    )
