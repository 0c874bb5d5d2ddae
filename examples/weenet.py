r"""WeeNet: a depthwise convolution, a batch norm and a ReLU; what folding and fusing them is worth.

Usage:
  pipeline-compile examples/weenet.py -o weenet.pipeline
  pipeline-compile examples/weenet.py -o plain.pipeline \
    --disable fold-batch-norm --disable merge-scale-shifts --disable fuse-elementwise
  python -c "import numpy; numpy.save('x.npy', numpy.random.rand(1, 64, 128, 128).astype('float32'))"
  pipeline-run weenet.pipeline --input x.npy --benchmark --against plain.pipeline --repeats 500
"""

from __future__ import annotations

import torch
from torch import nn


def model() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """The network, with random statistics and affine of the norm, and an image to run it on."""
    torch.manual_seed(0)
    norm = nn.BatchNorm2d(64)
    net = nn.Sequential(nn.Conv2d(64, 64, 3, padding=1, groups=64, bias=False), norm, nn.ReLU())
    net.eval().requires_grad_(False)
    norm.running_mean.normal_(0, 0.1)
    norm.running_var.uniform_(0.5, 1.5)
    norm.weight.uniform_(0.5, 1.5)
    norm.bias.normal_(0, 0.1)
    return net, (torch.randn(1, 64, 128, 128),)
