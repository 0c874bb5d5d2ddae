"""What the arguments that a program writes to become: further results, in front of its own."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import fx
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec, OutputKind, OutputSpec, TensorArgument

from pipeline.frontend.functionalize.plain_values import NotPlainError, type_key
from pipeline.runtime.call.array_libraries import extent, overlap

#: What the result is that stands for what an argument becomes, by the kind of the argument.
_MUTATIONS = {InputKind.BUFFER: OutputKind.BUFFER_MUTATION, InputKind.USER_INPUT: OutputKind.USER_INPUT_MUTATION}


@dataclass(frozen=True)
class WrittenArguments:
    """Those of a program.

    Attributes:
        values: the last value of each, a node of the new graph, by its name.
    """

    exported: ExportedProgram
    values: dict[str, fx.Node] = field(default_factory=dict)

    def write(self, argument: fx.Node, value: fx.Node) -> None:
        """Takes note of a value.

        Raises:
            NotPlainError: the argument is a parameter or a constant, or a weight lies in its memory, too.
        """
        if type_key(argument.meta["val"]) != type_key(value.meta["val"]) or not self._is_apart(argument.name):
            raise NotPlainError
        self.values[argument.name] = value

    def results(self) -> list[fx.Node]:
        """The last values, in the order of the arguments."""
        return [self.values[spec.arg.name] for spec in self._specs()]

    def output_specs(self) -> list[OutputSpec]:
        """What these results are."""
        return [
            OutputSpec(
                _MUTATIONS[spec.kind],
                TensorArgument(self.values[spec.arg.name].name),
                spec.arg.name if spec.kind == InputKind.USER_INPUT else spec.target,
            )
            for spec in self._specs()
        ]

    def _specs(self) -> list[InputSpec]:
        return [spec for spec in self.exported.graph_signature.input_specs if spec.arg.name in self.values]

    def _is_apart(self, name: str) -> bool:
        """Whether an argument is the caller's, or a buffer with memory of its own."""
        spec = next(spec for spec in self.exported.graph_signature.input_specs if spec.arg.name == name)
        if spec.kind not in _MUTATIONS:
            return False
        tensors = {**self.exported.constants, **self.exported.state_dict}
        others = [(other, tensor) for other, tensor in tensors.items() if isinstance(tensor, torch.Tensor)]
        own = dict(others).get(spec.target or "")
        if own is None:
            return spec.kind == InputKind.USER_INPUT
        place = extent(name, own)
        return not any(overlap(place, extent(other, tensor)) for other, tensor in others if other != spec.target)
