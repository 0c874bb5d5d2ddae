"""Weights of models in tests: drawn so that every layer matters.

Norm statistics and affine parameters differ from their defaults, and matrices are scaled so that signals stay about as
large as they come in.
"""

from __future__ import annotations

import math

import torch
from torch import nn


def randomize(model: nn.Module) -> nn.Module:
    """Draws all weights anew: matrices keep the variance of what they multiply, nothing else stays at its default."""
    with torch.no_grad():
        for module in model.modules():
            for name, parameter in module.named_parameters(recurse=False):
                _randomize_parameter(module, name, parameter)
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                module.running_mean.normal_(0, 0.3)
                module.running_var.uniform_(0.5, 1.5)
    return model


def _randomize_parameter(module: nn.Module, name: str, parameter: nn.Parameter) -> None:
    if "Norm" in type(module).__name__:
        parameter.uniform_(0.5, 1.5) if name == "weight" else parameter.normal_(0, 0.3)
    elif isinstance(module, nn.Embedding):
        parameter.normal_(0, 0.5)
    elif isinstance(module, (nn.Linear, nn.modules.conv._ConvNd)) and name == "weight":
        parameter.normal_(0, 1 / math.sqrt(parameter[0].numel()))
    elif name == "bias":
        parameter.normal_(0, 0.1)
    elif parameter.min() == parameter.max():  # layer scales, class tokens, position tables
        parameter.uniform_(0.5, 1.5)
