"""TorchScript → a module that torch.export can trace: what runs a script's graph, node by node.

Control flow on numbers that are known runs here and leaves no trace; control flow on tensors becomes cond and
while_loop, see `script_regions`. Numbers, lists and dicts are Python's.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from pipeline.errors import CaptureError
from pipeline.frontend.script_ops import CHANGES, PYTHON_OPS, TENSOR_QUESTIONS, torch_argument
from pipeline.frontend.script_regions import run_branch, run_loop
from pipeline.frontend.script_values import UNINITIALIZED


def module_of_script(script: torch.jit.ScriptModule) -> nn.Module:
    """A module with the script's forward method and its parameters and buffers, under the same names."""
    return _Script(script)


class _Script(nn.Module):
    """Runs the graph of a script's forward method."""

    def __init__(self, script: torch.jit.ScriptModule):
        super().__init__()
        self.training = script.training
        self._graph = script.inlined_graph
        self._modules_of_script = dict(script.named_modules(remove_duplicate=False))
        self._defaults = [(one.name, one.default_value) for one in script.forward.schema.arguments[1:]]
        self._tensors: dict[str, tuple[nn.Module, str]] = {}
        for name, parameter in script.named_parameters(remove_duplicate=False):
            self._place(name)[0].register_parameter(self._place(name)[1], parameter)
        for name, buffer in script.named_buffers(remove_duplicate=False):
            self._place(name)[0].register_buffer(self._place(name)[1], buffer)

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
        given = dict(zip((name for name, _ in self._defaults), args, strict=False)) | kwargs
        values = [given.get(name, default) for name, default in self._defaults]
        run = Run(self._modules_of_script, {name: getattr(*place) for name, place in self._tensors.items()})
        inputs = list(self._graph.inputs())
        env = {inputs[0].debugName(): Module("")}
        env |= {value.debugName(): given for value, given in zip(inputs[1:], values, strict=True)}
        run.nodes(self._graph, env)
        results = [run.result(value, env) for value in self._graph.outputs()]
        for name, value in run.assigned.items():
            getattr(*self._tensors[name]).copy_(value)
        return results[0] if len(results) == 1 else tuple(results)


@dataclass(frozen=True)
class Module:
    """A module of the script, by its path."""

    path: str


class Run:
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

    def within(self, tensors: dict[str, torch.Tensor], borrowed: dict[int, Any], trial: bool) -> Run:
        """A run of a branch or of the body of a loop."""
        return Run(self.modules, tensors, borrowed, trial or self.trial, inside=True)

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
        elif kind == "prim::Constant":
            env[node.output().debugName()] = node.output().toIValue()
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
        if kind == "prim::DictConstruct":
            return dict(zip(values[::2], values[1::2], strict=True))
        if kind == "prim::RaiseException":
            raise CaptureError(f"the script raises {values[0]!r} here, in a branch on values of tensors or always")
        if kind == "prim::Print":
            return None
        if kind in CHANGES and isinstance(values[0], (list, dict)):
            if id(values[0]) in self.borrowed:
                raise CaptureError("a list is changed in a branch or loop on values of tensors, use a tensor for it")
            return CHANGES[kind](*values)
        table = TENSOR_QUESTIONS if any(isinstance(value, torch.Tensor) for value in values) else PYTHON_OPS
        return table[kind](*values) if kind in table else _torch_op(node, kind, values)

    def _attribute(self, owner: Module, name: str) -> Any:
        path = f"{owner.path}.{name}" if owner.path else name
        if path in self.tensors:
            return self.tensors[path]
        if path in self.modules:
            return Module(path)
        return self.modules[owner.path]._c.getattr(name)

    def _assign(self, owner: Module, name: str, value: Any) -> None:
        path = f"{owner.path}.{name}" if owner.path else name
        if path in self.tensors and _is_same_tensor(self.tensors[path], value):
            return  # self.x += 1
        if self.inside or path not in self.tensors:
            raise CaptureError(f"the script assigns to self.{path} here; write to a buffer in place instead")
        self.tensors[path] = self.assigned[path] = value


def _is_same_tensor(one: torch.Tensor, other: torch.Tensor) -> bool:
    places = [(t.untyped_storage()._cdata, t.storage_offset(), t.shape, t.stride(), t.dtype) for t in (one, other)]
    return places[0] == places[1]


def _torch_op(node: Any, kind: str, values: list[Any]) -> Any:
    schema = node.schema()
    if schema == "(no schema)":
        raise CaptureError(f"{kind} of TorchScript is not supported")
    namespace, name = kind.split("::")
    overload = schema.partition("(")[0].partition(".")[2] or "default"
    op = getattr(getattr(getattr(torch.ops, namespace), name), overload)
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
