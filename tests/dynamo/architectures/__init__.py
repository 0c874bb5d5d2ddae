"""Architectures in small configurations with random weights, called the way their documentation does."""

from architectures.architecture import Architecture, call
from architectures.decoders import DECODERS
from architectures.encoders import ENCODERS
from architectures.pairs import PAIRS
from architectures.timm_images import TIMM
from architectures.torchvision_images import TORCHVISION
from architectures.transformers_images import IMAGES

#: Those of transformers, by name.
TRANSFORMERS: dict[str, Architecture] = {**ENCODERS, **DECODERS, **PAIRS, **IMAGES}

#: All, by library and name.
LIBRARIES: dict[str, dict[str, Architecture]] = {
    "transformers": TRANSFORMERS,
    "torchvision": TORCHVISION,
    "timm": TIMM,
}

__all__ = ["LIBRARIES", "TIMM", "TORCHVISION", "TRANSFORMERS", "Architecture", "call"]
