"""TorchScript → a module that torch.export can trace: what runs a script's graph, node by node.

Control flow on numbers that are known runs here and leaves no trace; control flow on tensors becomes cond and
while_loop, see `script_regions`. Numbers, lists and dicts are Python's.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from pipeline.errors import CaptureError
from pipeline.frontend.capture.call_parameters import script_parameters
from pipeline.frontend.torchscript.flat_values import UNINITIALIZED, tuple_of
from pipeline.frontend.torchscript.graph_tensors import CONSTANTS, constant_name, constant_of, is_instance, tensors_of
from pipeline.frontend.torchscript.methods import forward_of
from pipeline.frontend.torchscript.python_ops import CHANGES, MKLDNN_OPS, PYTHON_OPS, TENSOR_QUESTIONS, torch_argument
from pipeline.frontend.torchscript.raises import ScriptRaises
from pipeline.frontend.torchscript.tensor_control_flow import run_branch, run_loop


def module_of_script(
    script: torch.jit.ScriptModule | torch.jit.ScriptFunction, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> nn.Module:
    """A module with the script's forward method for these arguments, or the function; its tensors have the same names.

    Raises:
        CaptureError: the script has no such method.
    """
    return _Script(script, forward_of(script, args, kwargs))


class _Script(nn.Module):
    """Runs the graph of a script's forward method, or of a function."""

    def __init__(self, script: torch.jit.ScriptModule | torch.jit.ScriptFunction, method: Any):
        super().__init__()
        self.training = bool(getattr(script, "training", False))  # a frozen one has no such attribute
        self._graph = method.inlined_graph
        self._has_self = isinstance(script, torch.jit.ScriptModule)
        self._modules_of_script = dict(script.named_modules(remove_duplicate=False)) if self._has_self else {}
        self._schema = script_parameters(method)
        self._tensors: dict[str, tuple[nn.Module, str]] = {}
        for name, tensor, is_parameter in tensors_of(script, self._graph, self._modules_of_script):
            owner, last = self._place(name)
            if is_parameter:
                owner.register_parameter(last, tensor)
            else:
                owner.register_buffer(last, tensor)

    def _place(self, name: str) -> tuple[nn.Module, str]:
        """The module, made if need be, that has the tensor `name`, and what it calls it."""
        *path, last = name.split(".")
        owner: nn.Module = self
        for part in path:
            if part not in owner._modules:
                owner.add_module(part, nn.Module())
            owner = owner._modules[part]
        self._tensors[name] = owner, last
        return owner, last

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        values = self._bound(args, kwargs)
        run = GraphRun(self._modules_of_script, {name: getattr(*place) for name, place in self._tensors.items()})
        inputs = list(self._graph.inputs())
        env: dict[str, Any] = {inputs[0].debugName(): Module("")} if self._has_self else {}
        names = (value.debugName() for value in inputs[len(env) :])
        env |= dict(zip(names, values, strict=True))
        run.nodes(self._graph, env)
        results = [run.result(value, env) for value in self._graph.outputs()]
        run.check_kept()
        for name, value in run.assigned.items():
            getattr(*self._tensors[name]).copy_(value)
        return results[0] if len(results) == 1 else tuple(results)

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The value of each parameter in a call."""
        names = [argument.name for argument in self._schema]
        expected = f"expected {', '.join(names) or 'none'}"
        if len(args) > len(names):
            raise CaptureError(f"the script got {len(args)} arguments; {expected}")
        given = dict(zip(names, args, strict=False))
        for name, value in kwargs.items():
            if name not in names or name in given:
                raise CaptureError(f"the script got {name!r} {'twice' if name in given else ''}; {expected}")
            given[name] = value
        missing = [
            argument.name
            for argument in self._schema
            if argument.name not in given and not argument.has_default_value()
        ]
        if missing:
            raise CaptureError(f"the script needs {', '.join(missing)}; {expected}")
        return [given.get(argument.name, argument.default_value) for argument in self._schema]


@dataclass(frozen=True)
class Module:
    """A module of the script, by its path."""

    path: str


class GraphRun:
    """One run of a script's graph, in which `trial` says that values are examples and nothing is traced.

    Attributes:
        tensors: the parameters and buffers by name.
        assigned: those that the script gave another value, which is written to them when it is done.
        borrowed: lists and dicts that come from outside of the branch or loop that runs, by their identity.
    """

    def __init__(
        self,
        modules: dict[str, Any],
        tensors: dict[str, torch.Tensor],
        borrowed: dict[int, Any] | None = None,
        trial: bool = False,
        inside: bool = False,
    ):
        self.modules = modules
        self.tensors = tensors
        self.assigned: dict[str, torch.Tensor] = {}
        self.borrowed = borrowed or {}
        self.trial = trial
        self.inside = inside
        self._kept: dict[str, tuple[Any, Any]] = {}

    def check_kept(self) -> None:
        """Raises `CaptureError` if the next call would find other values than tensors in the script's attributes."""
        for path, (before, after) in self._kept.items():
            if type(before) is not type(after) or before != after:
                raise CaptureError(
                    f"the script changes self.{path} from {before!r} to {after!r}, and a compiled model keeps tensors "
                    "alone from call to call: call the script once before, so that it keeps its value, or use a buffer"
                )

    def within(self, tensors: dict[str, torch.Tensor], borrowed: dict[int, Any], trial: bool) -> GraphRun:
        """A run of a branch or of the body of a loop."""
        return GraphRun(self.modules, tensors, borrowed, trial or self.trial, inside=True)

    def nodes(self, block: Any, env: dict[str, Any]) -> None:
        """Runs a block's nodes; `env` has the values by name, and gets those that the nodes make."""
        for node in block.nodes():
            self._node(node, env)

    def result(self, value: Any, env: dict[str, Any]) -> Any:
        """What the script returns as `value`: a number in place of a tensor becomes one."""
        found = env[value.debugName()]
        is_tensor = str(value.type()) == "Tensor"
        return torch.tensor(found) if is_tensor and isinstance(found, (bool, int, float)) else found

    def _node(self, node: Any, env: dict[str, Any]) -> None:
        kind = node.kind()
        if kind == "prim::If":
            self._bind(node, run_branch(self, node, env), env)
        elif kind == "prim::Loop":
            self._bind(node, run_loop(self, node, env), env)
        elif kind in CONSTANTS:
            name = node.output().debugName()
            env[name] = self.tensors[key] if (key := constant_name(name)) in self.tensors else constant_of(node)
        elif kind == "prim::Uninitialized":
            env[node.output().debugName()] = UNINITIALIZED
        else:
            values = [env[value.debugName()] for value in node.inputs()]
            result = _at(node, self._run, node, kind, values)
            self._bind(node, result if node.outputsSize() > 1 else (result,), env)

    def _bind(self, node: Any, results: Any, env: dict[str, Any]) -> None:
        for value, result in zip(node.outputs(), results, strict=False):
            env[value.debugName()] = result

    def _run(self, node: Any, kind: str, values: list[Any]) -> Any:
        if kind == "prim::GetAttr":
            return self._attribute(values[0], node.s("name"))
        if kind == "prim::SetAttr":
            return self._assign(values[0], node.s("name"), values[1])
        if kind in ("prim::TupleUnpack", "prim::ListUnpack"):
            return tuple(values[0]) if node.outputsSize() > 1 else values[0][0]
        if kind == "prim::TupleConstruct":
            return tuple_of(node, values)
        if kind == "prim::DictConstruct":
            return dict(zip(values[::2], values[1::2], strict=True))
        if kind == "prim::isinstance":
            return is_instance(node)
        if kind == "prim::PythonOp":
            return node.pyobj()(*map(self._of_python, values))
        if kind == "prim::TupleSlice":
            return values[0][node.i("beg") : node.i("end")]
        if kind == "prim::RaiseException":
            raise ScriptRaises(values[0])
        if kind in ("prim::Print", "aten::warn"):
            return None
        if kind in CHANGES and isinstance(values[0], (list, dict)):
            if id(values[0]) in self.borrowed:
                raise CaptureError("a list is changed in a branch or loop on values of tensors, use a tensor for it")
            return CHANGES[kind](*values)
        if kind in ("aten::tensor", "aten::as_tensor") and isinstance(values[0], list):
            return torch.tensor(values[0], dtype=torch_argument("dtype", values[1]))
        if kind in MKLDNN_OPS:
            return MKLDNN_OPS[kind](*values)
        table = TENSOR_QUESTIONS if any(isinstance(value, torch.Tensor) for value in values) else PYTHON_OPS
        return table[kind](*values) if kind in table else _torch_op(node, kind, values)

    def _of_python(self, value: Any) -> Any:
        """A value as methods marked with torch.jit.ignore take it."""
        return self.modules[value.path]._c if isinstance(value, Module) else value

    def _attribute(self, owner: Module, name: str) -> Any:
        path = f"{owner.path}.{name}" if owner.path else name
        if path in self.tensors:
            return self.tensors[path]
        if path in self._kept:
            return self._kept[path][1]
        if path in self.modules:
            return Module(path)
        return self.modules[owner.path]._c.getattr(name)

    def _assign(self, owner: Module, name: str, value: Any) -> None:
        path = f"{owner.path}.{name}" if owner.path else name
        if path in self.tensors and _is_same_tensor(self.tensors[path], value):
            return  # self.x += 1
        if self.inside:
            raise CaptureError(f"the script assigns to self.{path} here; write to a buffer in place instead")
        if path not in self.tensors:
            self._keep(owner, name, path, value)
            return
        self._check_size(path, value)
        self.tensors[path] = self.assigned[path] = value

    def _keep(self, owner: Module, name: str, path: str, value: Any) -> None:
        """Remembers the new value of an attribute that is no tensor."""
        before = self._kept[path][0] if path in self._kept else self.modules[owner.path]._c.getattr(name)
        if isinstance(value, torch.Tensor):
            raise CaptureError(
                f"self.{path} is {before!r} and becomes a tensor: call the script once before, so that it is one"
            )
        self._kept[path] = before, value

    def _check_size(self, path: str, value: Any) -> None:
        old = self.tensors[path]
        if not isinstance(value, torch.Tensor) or (old.shape, old.dtype) != (value.shape, value.dtype):
            raise CaptureError(
                f"the script gives self.{path} another size, dtype or kind than it has ({list(old.shape)}): call the "
                "script once before, so that it has its final one"
            )


def _is_same_tensor(one: torch.Tensor, other: torch.Tensor) -> bool:
    places = [(t.untyped_storage()._cdata, t.storage_offset(), t.shape, t.stride(), t.dtype) for t in (one, other)]
    return places[0] == places[1]


def _torch_op(node: Any, kind: str, values: list[Any]) -> Any:
    schema = node.schema()
    if schema == "(no schema)":
        raise CaptureError(f"{kind} of TorchScript is not supported")
    namespace, name = kind.split("::")
    overload = schema.partition("(")[0].partition(".")[2] or "default"
    op = getattr(getattr(getattr(torch.ops, namespace), name, None), overload, None)
    if op is None or not isinstance(op, torch._ops.OpOverload):
        raise CaptureError(f"{kind} of TorchScript is not supported")
    arguments, keywords = [], {}
    for argument, value in zip(op._schema.arguments, values, strict=True):
        value = torch_argument(argument.name, value)
        if argument.kwarg_only:
            keywords[argument.name] = value
        else:
            arguments.append(value)
    return op(*arguments, **keywords)


def _at(node: Any, function: Any, *args: Any) -> Any:
    """Calls `function` from the line of the model's source that the node comes from, which tracebacks then name."""
    found = re.findall(r'File "([^"]+)", line (\d+)', node.sourceRange())
    return eval(_call(*found[-1]), {"function": function, "args": args}) if found else function(*args)


@functools.lru_cache(maxsize=1024)
def _call(file: str, line: str) -> Any:
    """The code of a call that lies at a line of a file, in a `forward`, which is what torch takes traces from."""
    return compile("\n" * (int(line) - 1) + "function(*args)", file, "eval").replace(co_name="forward")
