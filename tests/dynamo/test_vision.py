"""Image models of torchvision and timm through torch.compile: equal to eager, for any batch and size that they take."""

from __future__ import annotations

import pytest
import torch
from architectures import LIBRARIES
from compare import TOLERANCE
from through_compile import through_compile

#: Those that `make test` takes, some with gradients; docs/models.md has all of them, with and without.
_WITH_GRADIENTS = {"torchvision/mobilenet_v3", "timm/vit"}
_WITHOUT = {"torchvision/resnet", "torchvision/lraspp", "torchvision/shufflenet_v2", "timm/convnext", "timm/mixer"}


@pytest.mark.parametrize("name", sorted(_WITH_GRADIENTS | _WITHOUT))
def test_architecture(name):
    library, _, model = name.partition("/")
    architecture = LIBRARIES[library][model]
    gradients = name in _WITH_GRADIENTS
    outcome = through_compile(architecture, gradients)
    assert outcome.graphs == (1, 1, 2, 2)
    assert outcome.direct == (0 if gradients else 2)
    assert outcome.error <= TOLERANCE


def test_operators_of_torchvision():
    """Its own, or those that stand in for them where its library does not load."""
    from torchvision.ops import nms, roi_align

    boxes = torch.tensor([[0.0, 0, 10, 10], [1, 0, 11, 10], [20, 20, 30, 30], [0, 0, 10, 9]])
    assert nms(boxes, torch.tensor([0.5, 0.9, 0.1, 0.8]), 0.5).tolist() == [1, 2]
    image = torch.arange(64.0).view(1, 1, 8, 8)
    pooled = roi_align(image, torch.tensor([[0, 1.0, 1, 5, 5]]), (2, 2), sampling_ratio=2, aligned=True)
    torch.testing.assert_close(pooled, torch.tensor([[[[13.5, 15.5], [29.5, 31.5]]]]))
