"""Classifiers of timm, made by `timm.create_model` as its documentation does, made small by its own options."""

from __future__ import annotations

from typing import Any

import timm
import torch
from timm.models.mlp_mixer import MlpMixer

from architectures.architecture import Architecture, images

_SIDES = ((2, 64), (2, 64), (3, 96), (4, 80))
_EVEN = ((2, 64), (2, 64), (3, 96), (4, 128))
_BATCHES = ((2, 64), (2, 64), (3, 64), (4, 64))
_TINY: dict[str, Any] = {"img_size": 64, "depth": 2, "embed_dim": 32, "num_heads": 2}


def _model(name: str, sizes: tuple[tuple[int, int], ...] = _SIDES, graphs: int = 2, **options: Any) -> Architecture:
    def build() -> torch.nn.Module:
        return timm.create_model(name, pretrained=False, num_classes=10, **options)

    return Architecture(build, images, sizes, graphs)


TIMM: dict[str, Architecture] = {
    "beit": _model("beit_base_patch16_224", _BATCHES, **_TINY),
    "cait": _model("cait_xxs24_224", _BATCHES, img_size=64, depth=1, depth_token_only=1, embed_dim=32, num_heads=2),
    "coat": _model("coat_tiny", _BATCHES, img_size=64, serial_depths=(1, 1, 1, 1), parallel_depth=1),
    "convnext": _model("convnext_atto", depths=(1, 1, 1, 1), dims=(8, 16, 16, 32)),
    "deit": _model("deit_tiny_distilled_patch16_224", _BATCHES, **_TINY),
    "densenet": _model("densenet121", growth_rate=8, block_config=(1, 2, 2, 1)),
    "dla": _model("dla34", _EVEN, channels=(8, 8, 8, 16, 16, 32)),
    "edgenext": _model("edgenext_xx_small", dims=(8, 16, 32, 48), depths=(1, 2, 2, 2), heads=(2, 2, 2, 2)),
    "efficientformer": _model(
        "efficientformer_l1",
        ((1, 224), (1, 224), (2, 224)),
        graphs=3,  # it keeps biases of its attention from the first call on
        depths=(1, 1, 1, 1),
        embed_dims=(8, 16, 16, 32),
    ),
    "efficientnet": _model("efficientnet_b0"),
    "eva": _model(
        "eva02_tiny_patch14_224", ((2, 56), (2, 56), (3, 56), (4, 56)), **{**_TINY, "img_size": 56, "patch_size": 8}
    ),
    "ghostnet": _model("ghostnet_050"),
    "hrnet": _model("hrnet_w18_small", _EVEN),
    "levit": _model(
        "levit_128s",
        ((2, 224), (2, 224), (3, 224)),
        graphs=3,  # as efficientformer
        embed_dim=(16, 32, 32),
        key_dim=8,
        num_heads=(2, 2, 2),
        depth=(1, 1, 1),
    ),
    "mixer": Architecture(
        lambda: MlpMixer(num_classes=10, img_size=64, patch_size=16, num_blocks=2, embed_dim=32), images, _BATCHES
    ),
    "mobilenetv3": _model("mobilenetv3_small_050"),
    "mobilenetv4": _model("mobilenetv4_conv_small_035"),
    "mobilevit": _model("mobilevit_xxs", _BATCHES),  # torch reasons for minutes about patches of symbolic sides
    "nfnet": _model("nfnet_l0"),
    "pit": _model("pit_ti_224", ((2, 224), (2, 224), (3, 224))),
    "pvt_v2": _model("pvt_v2_b0", depths=(1, 1, 1, 1)),
    "regnet": _model("regnetx_002"),
    "repvgg": _model("repvgg_a0"),
    "resnest": _model("resnest14d"),
    "resnetv2": _model("resnetv2_50", layers=(1, 1, 1, 1), channels=(32, 64, 64, 64), stem_chs=16),
    "res2net": _model("res2net50_26w_4s"),
    "seresnet": _model("seresnet18"),
    "swin": _model(
        "swin_tiny_patch4_window7_224",
        _BATCHES,
        img_size=64,
        window_size=4,
        embed_dim=16,
        depths=(2, 2),
        num_heads=(2, 2),
    ),
    "vit": _model("vit_tiny_patch16_224", _BATCHES, **_TINY),
    "xcit": _model("xcit_nano_12_p16_224", _BATCHES, img_size=64, depth=2, embed_dim=32, num_heads=2),
}
