"""Image models of transformers."""

from __future__ import annotations

from typing import Any

import transformers as tf

from architectures.architecture import Architecture, pixels
from architectures.encoders import HIDDEN

_PATCHES: dict[str, Any] = {**HIDDEN, "image_size": 32, "patch_size": 8}

#: Images have one size where positions are learned.
_BATCHES = ((2, 32), (2, 32), (3, 32), (4, 32))
_SIDES = ((2, 64), (2, 64), (3, 96), (4, 80))


def _images(
    model: str, config: str, sizes: tuple[tuple[int, int], ...] = _BATCHES, graphs: int = 2, **options: Any
) -> Architecture:
    return Architecture(lambda: getattr(tf, model)(getattr(tf, config)(**options)), pixels, sizes, graphs)


IMAGES: dict[str, Architecture] = {
    "beit": _images("BeitModel", "BeitConfig", **_PATCHES),
    "convnext-tf": _images(
        "ConvNextModel", "ConvNextConfig", _SIDES, hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1]
    ),
    "deit-tf": _images("DeiTModel", "DeiTConfig", **_PATCHES),
    "dinov2": _images("Dinov2Model", "Dinov2Config", **_PATCHES),
    "poolformer": _images(
        "PoolFormerModel", "PoolFormerConfig", _SIDES, hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1]
    ),
    "resnet-tf": _images(
        "ResNetForImageClassification",
        "ResNetConfig",
        _SIDES,
        embedding_size=8,
        hidden_sizes=[8, 16],
        depths=[1, 1],
        layer_type="basic",
    ),
    "segformer": _images(
        "SegformerForSemanticSegmentation",
        "SegformerConfig",
        _SIDES,
        graphs=3,  # transformers' hooks on outputs take a lock in the first call
        hidden_sizes=[8, 8, 16, 16],
        depths=[1, 1, 1, 1],
        num_attention_heads=[1, 1, 2, 2],
        decoder_hidden_size=16,
    ),
    "swin": _images(
        "SwinModel",
        "SwinConfig",
        image_size=32,
        patch_size=2,
        embed_dim=8,
        depths=[1, 1],
        num_heads=[1, 2],
        window_size=4,
    ),
    "vit": _images("ViTModel", "ViTConfig", **_PATCHES),
}
