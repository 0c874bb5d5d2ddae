"""The convolutional networks of the literature, each with its own kinds of blocks, a few blocks and channels small."""

import torch
import torch.nn.functional as F
from torch import nn


def unit(channels_in, channels, kernel=1, stride=1, groups=1, activation=nn.ReLU):
    """Convolution, norm, activation."""
    layers = [
        nn.Conv2d(channels_in, channels, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(channels),
    ]
    return nn.Sequential(*layers, *([activation()] if activation is not None else []))


class Residual(nn.Module):
    """ResNet's blocks: two 3x3, or 1x1, 3x3 (in groups: RegNet), 1x1; a shortcut with a convolution if needed."""

    def __init__(self, channels_in, channels, stride, bottleneck=1, groups=0):
        super().__init__()
        if groups or bottleneck > 1:
            inner = channels // bottleneck
            layers = [unit(channels_in, inner), unit(inner, inner, 3, stride, groups or 1)]
            self.body = nn.Sequential(*layers, unit(inner, channels, activation=None))
        else:
            self.body = nn.Sequential(
                unit(channels_in, channels, 3, stride), unit(channels, channels, 3, activation=None)
            )
        plain = stride == 1 and channels_in == channels
        self.shortcut = nn.Identity() if plain else unit(channels_in, channels, 1, stride, activation=None)

    def forward(self, x):
        return F.relu(self.body(x) + self.shortcut(x))


class Inverted(nn.Module):
    """MobileNetV2's block; V3 and EfficientNet add squeeze and excitation and other activations."""

    def __init__(self, channels_in, channels, stride, activation, squeeze=None):
        super().__init__()
        inner = 3 * channels_in
        self.expand = unit(channels_in, inner, activation=activation)
        self.depthwise = unit(inner, inner, 3, stride, inner, activation)
        self.squeeze = None
        if squeeze is not None:
            layers = [nn.AdaptiveAvgPool2d(1), nn.Conv2d(inner, 4, 1), activation(), nn.Conv2d(4, inner, 1), squeeze()]
            self.squeeze = nn.Sequential(*layers)
        self.project = unit(inner, channels, activation=None)
        self.residual = stride == 1 and channels_in == channels

    def forward(self, x):
        y = self.depthwise(self.expand(x))
        if self.squeeze is not None:
            y = y * self.squeeze(y)
        y = self.project(y)
        return x + y if self.residual else y


class Dense(nn.Module):
    """DenseNet's layer: norm, relu, convolution, twice; its result is appended to what it read."""

    def __init__(self, channels, growth):
        super().__init__()
        self.norm1, self.conv1 = nn.BatchNorm2d(channels), nn.Conv2d(channels, 2 * growth, 1, bias=False)
        self.norm2, self.conv2 = nn.BatchNorm2d(2 * growth), nn.Conv2d(2 * growth, growth, 3, padding=1, bias=False)

    def forward(self, x):
        y = self.conv1(F.relu(self.norm1(x)))
        return torch.cat([x, self.conv2(F.relu(self.norm2(y)))], 1)


class Inception(nn.Module):
    """Branches of several kernel sizes, concatenated, with one more norm behind."""

    def __init__(self, channels_in):
        super().__init__()
        self.branches = nn.ModuleList([unit(channels_in, 4), unit(channels_in, 4, 3), unit(channels_in, 2, 5)])
        self.plain = nn.ModuleList([nn.Conv2d(10, 4, 1), nn.Conv2d(10, 3, 3, padding=1)])
        self.norm = nn.BatchNorm2d(7)

    def forward(self, x):
        x = torch.cat([branch(x) for branch in self.branches], 1)
        return F.relu(self.norm(torch.cat([branch(x) for branch in self.plain], 1)))


class UNet(nn.Module):
    """Down by pooling, up by transposed convolutions, with skip connections."""

    def __init__(self):
        super().__init__()
        self.down1, self.down2 = unit(3, 4, 3), unit(4, 8, 3)
        self.middle = unit(8, 8, 3)
        self.up2 = nn.Sequential(nn.ConvTranspose2d(8, 4, 2, 2), nn.BatchNorm2d(4), nn.ReLU())
        self.up1 = nn.Sequential(nn.ConvTranspose2d(12, 4, 2, 2), nn.BatchNorm2d(4), nn.ReLU())
        self.last = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        first = self.down1(x)
        second = self.down2(F.max_pool2d(first, 2))
        y = torch.cat([second, self.up2(self.middle(F.max_pool2d(second, 2)))], 1)
        return self.last(torch.cat([first, self.up1(y)], 1))


class Shuffle(nn.Module):
    """ShuffleNetV2's block: half of the channels pass by, then the halves are shuffled."""

    def __init__(self, channels):
        super().__init__()
        half = channels // 2
        self.body = nn.Sequential(unit(half, half), unit(half, half, 3, 1, half, None), unit(half, half))

    def forward(self, x):
        left, right = x.chunk(2, 1)
        y = torch.cat([left, self.body(right)], 1)
        n, c, h, w = y.shape
        return y.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)


def classifier(*layers, channels):
    """Layers, then the mean over the image and a linear layer."""
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 5))


def stem():
    """ResNet's first layers."""
    return nn.Sequential(unit(3, 4, 7, 2), nn.MaxPool2d(3, 2, 1))


NETWORKS = {
    "ResNet-18": lambda: classifier(stem(), Residual(4, 4, 1), Residual(4, 8, 2), channels=8),
    "ResNet-50": lambda: classifier(stem(), Residual(4, 8, 1, 4), Residual(8, 16, 2, 4), channels=16),
    "RegNet": lambda: classifier(stem(), Residual(4, 8, 2, 1, 2), Residual(8, 8, 1, 1, 2), channels=8),
    "MobileNetV2": lambda: classifier(
        unit(3, 4, 3, 2, activation=nn.ReLU6), Inverted(4, 4, 1, nn.ReLU6), Inverted(4, 6, 2, nn.ReLU6), channels=6
    ),
    "MobileNetV3": lambda: classifier(
        unit(3, 4, 3, 2, activation=nn.Hardswish), Inverted(4, 4, 1, nn.Hardswish, nn.Hardsigmoid), channels=4
    ),
    "EfficientNet": lambda: classifier(
        unit(3, 4, 3, 2, activation=nn.SiLU), Inverted(4, 6, 2, nn.SiLU, nn.Sigmoid), channels=6
    ),
    "Inception": lambda: classifier(unit(3, 4, 3, 2), Inception(4), channels=7),
    "U-Net": UNet,
    "ShuffleNet": lambda: classifier(unit(3, 8, 3, 2), Shuffle(8), Shuffle(8), channels=8),
}


def dense_net():
    """DenseNet with two layers in its block and a transition."""
    transition = [nn.BatchNorm2d(12), nn.ReLU(), nn.Conv2d(12, 6, 1, bias=False), nn.AvgPool2d(2)]
    return classifier(unit(3, 4, 3, 2), Dense(4, 4), Dense(8, 4), *transition, nn.BatchNorm2d(6), channels=6)
