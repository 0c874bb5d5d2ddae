"""Random norms, and what a compiled model still computes per call."""

import re

import torch
from torch import nn

from pipeline.runtime.executable import Executable

_STATISTICS = (nn.modules.batchnorm._BatchNorm, nn.modules.instancenorm._InstanceNorm)
_NORMS = (*_STATISTICS, nn.LayerNorm, nn.GroupNorm)


def randomize(module: nn.Module, seed: int = 0) -> nn.Module:
    """Gives norms statistics and affines that are far from the defaults; sets eval mode."""
    generator = torch.Generator().manual_seed(seed)

    def uniform(tensor: torch.Tensor, low: float, high: float) -> None:
        tensor.data.copy_(torch.rand(tensor.shape, generator=generator) * (high - low) + low)

    for inner in module.modules():
        if isinstance(inner, _STATISTICS) and inner.running_mean is not None:
            uniform(inner.running_mean, -0.5, 0.5)
            uniform(inner.running_var, 0.3, 2.0)
        if isinstance(inner, _NORMS) and inner.weight is not None:
            uniform(inner.weight, 0.5, 1.5)
            uniform(inner.bias, -0.5, 0.5)
    return module.eval().requires_grad_(False)


def main_text(executable: Executable, stage: str = "fused") -> str:
    """The text of @main after a stage."""
    return re.split(r"(?=func\.func )", executable.ir(stage).split("func.func @main", 1)[1])[0]


def elementwise_ops(executable: Executable, op: str) -> int:
    """How often an op of arith runs for each element of a result, outside of reductions."""
    generics = [generic.split("linalg.yield")[0] for generic in main_text(executable).split("linalg.generic")[1:]]
    return sum(generic.count(f"arith.{op} ") for generic in generics if '"reduction"' not in generic)


def products(executable: Executable) -> int:
    """How many matrix products @main computes."""
    return main_text(executable).count('kind = "matmul"')


def remarks(executable: Executable, name: str, kind: str) -> list[str]:
    """The reasons of a pass's remarks of one kind."""
    return [one.reason for one in executable.remarks if one.pass_name == name and one.kind == kind]


def assert_close(result: torch.Tensor, expected: torch.Tensor, tolerance: float) -> None:
    """The largest error, relative to the largest number, is within the tolerance."""
    assert result.shape == expected.shape and result.dtype == expected.dtype
    error = (result.double() - expected.double()).abs().max() / expected.double().abs().max()
    assert error <= tolerance, f"relative error {error:.2e}"
