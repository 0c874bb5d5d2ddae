"""Classifiers, segmenters and detectors of torchvision: narrow or short variants by its own classes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torchvision.models as tv
from torch import nn
from torchvision.models import detection, segmentation
from torchvision.models.convnext import CNBlockConfig
from torchvision.models.detection import ssd
from torchvision.models.detection.anchor_utils import AnchorGenerator, DefaultBoxGenerator
from torchvision.models.detection.backbone_utils import BackboneWithFPN
from torchvision.models.efficientnet import MBConvConfig
from torchvision.models.googlenet import GoogLeNet
from torchvision.models.mobilenetv3 import InvertedResidualConfig
from torchvision.models.regnet import BlockParams
from torchvision.models.resnet import BasicBlock, Bottleneck
from torchvision.models.segmentation.deeplabv3 import DeepLabHead
from torchvision.models.segmentation.fcn import FCNHead
from torchvision.models.segmentation.lraspp import LRASPP
from torchvision.ops import FrozenBatchNorm2d

from architectures.architecture import Architecture, Given, images

_SIDES = ((2, 64), (2, 64), (3, 96), (4, 80))

#: Images of one size.
_BATCHES = ((2, 64), (2, 64), (3, 64), (4, 64))


def _features(resnet: nn.Module, *layers: str) -> nn.Module:
    from torchvision.models._utils import IntermediateLayerGetter

    return IntermediateLayerGetter(resnet, dict(zip(layers, ("out", "aux"), strict=False)))


def _resnet(**options: Any) -> nn.Module:
    return tv.ResNet(Bottleneck, [1, 1, 1, 1], num_classes=10, width_per_group=8, **options)


def _vgg() -> nn.Module:
    from torchvision.models.vgg import make_layers

    model = tv.VGG(make_layers([8, "M", 16, "M", 32, "M"], batch_norm=True), num_classes=10)
    model.classifier = nn.Sequential(nn.Linear(32 * 49, 32), nn.ReLU(True), nn.Dropout(), nn.Linear(32, 10))
    return model


def _alexnet() -> nn.Module:
    model = tv.AlexNet(num_classes=10)
    model.classifier = nn.Sequential(nn.Dropout(), nn.Linear(256 * 36, 32), nn.ReLU(inplace=True), nn.Linear(32, 10))
    return model


def _mobilenet_v3() -> nn.Module:
    setting = [
        InvertedResidualConfig(16, 3, 16, 16, True, "RE", 2, 1, 1.0),
        InvertedResidualConfig(16, 3, 48, 24, False, "HS", 2, 1, 1.0),
        InvertedResidualConfig(24, 5, 48, 24, True, "HS", 1, 1, 1.0),
    ]
    return tv.MobileNetV3(setting, last_channel=32, num_classes=10)


def _efficientnet() -> nn.Module:
    setting = [MBConvConfig(1, 3, 1, 16, 8, 1), MBConvConfig(4, 3, 2, 8, 16, 2), MBConvConfig(4, 5, 2, 16, 24, 1)]
    return tv.EfficientNet(setting, dropout=0.2, num_classes=10, last_channel=64)


def _regnet() -> nn.Module:
    params = BlockParams(
        depths=[1, 1, 2], widths=[8, 16, 32], group_widths=[8, 8, 8], bottleneck_multipliers=[1.0] * 3, strides=[2] * 3
    )
    params.se_ratio = 0.25
    return tv.RegNet(params, num_classes=10, stem_width=8)


def _swin(version: int) -> nn.Module:
    from torchvision.models.swin_transformer import PatchMergingV2, SwinTransformerBlockV2

    options: dict[str, Any] = {
        "patch_size": [4, 4],
        "embed_dim": 16,
        "depths": [2, 2],
        "num_heads": [2, 4],
        "window_size": [4, 4],
        "num_classes": 10,
    }
    if version == 2:
        options |= {"block": SwinTransformerBlockV2, "downsample_layer": PatchMergingV2}
    return tv.SwinTransformer(**options)


def _vit() -> nn.Module:
    return tv.VisionTransformer(
        image_size=64, patch_size=16, num_layers=2, num_heads=2, hidden_dim=32, mlp_dim=64, num_classes=10
    )


def _maxvit() -> nn.Module:
    return tv.MaxVit(
        input_size=(64, 64),
        stem_channels=8,
        partition_size=4,
        block_channels=[8, 16],
        block_layers=[1, 1],
        head_dim=8,
        stochastic_depth_prob=0.0,
        num_classes=10,
    )


def _convnext() -> nn.Module:
    setting = [CNBlockConfig(16, 32, 1), CNBlockConfig(32, 64, 1), CNBlockConfig(64, None, 1)]
    return tv.ConvNeXt(setting, num_classes=10)


def _deeplab() -> nn.Module:
    backbone = _features(_resnet(replace_stride_with_dilation=[False, True, True]), "layer4")
    return segmentation.DeepLabV3(backbone, DeepLabHead(2048, 5), None)


def _fcn() -> nn.Module:
    backbone = _features(_resnet(replace_stride_with_dilation=[False, True, True]), "layer4", "layer3")
    return segmentation.FCN(backbone, FCNHead(2048, 5), FCNHead(1024, 5))


def _lraspp() -> nn.Module:
    backbone = _features(tv.ResNet(BasicBlock, [1, 1, 1, 1]), "layer3", "layer1")
    backbone.return_layers = {"layer3": "high", "layer1": "low"}
    return LRASPP(backbone, low_channels=64, high_channels=256, num_classes=5)


def _pyramid(width: int = 32) -> nn.Module:
    resnet = tv.ResNet(BasicBlock, [1, 1, 1, 1], norm_layer=FrozenBatchNorm2d)
    return BackboneWithFPN(resnet, {"layer2": "0", "layer3": "1", "layer4": "2"}, [128, 256, 512], width)


_RESIZE: dict[str, Any] = {"min_size": 64, "max_size": 96, "num_classes": 4}
_ANCHORS = ((16,), (32,), (48,), (64,))


def _faster_rcnn() -> nn.Module:
    return detection.FasterRCNN(
        _pyramid(), rpn_anchor_generator=AnchorGenerator(_ANCHORS, ((0.5, 1.0, 2.0),) * 4), **_RESIZE
    )


def _mask_rcnn() -> nn.Module:
    return detection.MaskRCNN(
        _pyramid(), rpn_anchor_generator=AnchorGenerator(_ANCHORS, ((0.5, 1.0, 2.0),) * 4), **_RESIZE
    )


def _retinanet() -> nn.Module:
    return detection.RetinaNet(_pyramid(), anchor_generator=AnchorGenerator(_ANCHORS, ((1.0,),) * 4), **_RESIZE)


def _fcos() -> nn.Module:
    return detection.FCOS(_pyramid(64), anchor_generator=AnchorGenerator(_ANCHORS, ((1.0,),) * 4), **_RESIZE)


def _ssd() -> nn.Module:
    backbone = _pyramid()
    boxes = DefaultBoxGenerator([[2]] * 4, scales=[0.1, 0.3, 0.5, 0.7, 0.9])
    head = ssd.SSDHead([32] * 4, boxes.num_anchors_per_location(), 4)
    return ssd.SSD(backbone, boxes, (64, 64), num_classes=4, head=head)


def _list_of_images(rows: int, side: int) -> Given:
    return ([torch.rand(3, side, side + 8 * row) for row in range(rows)],)


def _classifier(build: Callable[[], nn.Module], sizes: tuple[tuple[int, int], ...] = _SIDES) -> Architecture:
    return Architecture(build, images, sizes)


def _detector(build: Callable[[], nn.Module]) -> Architecture:
    return Architecture(build, _list_of_images, ((2, 64), (2, 64), (1, 80)), graphs=None)


TORCHVISION: dict[str, Architecture] = {
    "alexnet": _classifier(_alexnet, ((2, 96), (2, 96), (3, 128), (4, 160))),
    "convnext": _classifier(_convnext),
    "deeplabv3": _classifier(_deeplab),
    "densenet": _classifier(partial(tv.DenseNet, 8, (1, 2, 2, 1), 16, num_classes=10)),
    "efficientnet": _classifier(_efficientnet),
    "fcn": _classifier(_fcn),
    "googlenet": _classifier(partial(GoogLeNet, num_classes=10, aux_logits=False, init_weights=False)),
    "lraspp": _classifier(_lraspp),
    "maxvit": _classifier(_maxvit, _BATCHES),
    "mnasnet": _classifier(partial(tv.MNASNet, 0.25, num_classes=10)),
    "mobilenet_v2": _classifier(partial(tv.MobileNetV2, num_classes=10, width_mult=0.25)),
    "mobilenet_v3": _classifier(_mobilenet_v3),
    "regnet": _classifier(_regnet),
    "resnet": _classifier(partial(tv.ResNet, BasicBlock, [1, 1, 1, 1], num_classes=10)),
    "resnext": _classifier(partial(_resnet, groups=2)),
    "shufflenet_v2": _classifier(partial(tv.ShuffleNetV2, [2, 2, 2], [8, 16, 32, 64, 64], num_classes=10)),
    "squeezenet": _classifier(partial(tv.SqueezeNet, "1_1", num_classes=10)),
    "swin_v1": _classifier(partial(_swin, 1), _BATCHES),
    "swin_v2": _classifier(partial(_swin, 2), _BATCHES),
    "vgg": _classifier(_vgg),
    "vit_b": _classifier(_vit, _BATCHES),
    "fasterrcnn": _detector(_faster_rcnn),
    "fcos": _detector(_fcos),
    "maskrcnn": _detector(_mask_rcnn),
    "retinanet": _detector(_retinanet),
    "ssd": _detector(_ssd),
}
