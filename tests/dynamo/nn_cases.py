"""Every module class of torch.nn, made small, with inputs: `CASES[name]()` gives (module, inputs)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

Case = tuple[nn.Module, tuple[Any, ...]]

CASES: dict[str, Callable[[], Case]] = {}

#: Base classes, containers of parameters alone, and what is no module.
NOT_CALLED = {
    "Container",
    "LinearCrossEntropyOptions",
    "Module",
    "ModuleDict",
    "ModuleList",
    "ParameterDict",
    "ParameterList",
    "RNNBase",
    "RNNCellBase",
    "SyncBatchNorm",  # for GPUs
}

#: Draw random numbers while training, which are not eager's.
RANDOM = {
    "AlphaDropout",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "FeatureAlphaDropout",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "RReLU",
}


def _add(names: str, make: Callable[[type[nn.Module]], Case]) -> None:
    for name in names.split():
        CASES[name] = lambda name=name: make(getattr(nn.modules, name))


def _of(size: tuple[int, ...], *args: Any, **kwargs: Any) -> Callable[[type[nn.Module]], Case]:
    return lambda kind: (kind(*args, **kwargs), (torch.randn(size),))


def _loss(first: Callable[[], Any], second: Callable[[], Any], **kwargs: Any) -> Callable[[type[nn.Module]], Case]:
    return lambda kind: (kind(**kwargs), (first(), second()))


def _signs(*size: int) -> torch.Tensor:
    return torch.randint(0, 2, size) * 2.0 - 1


_IMAGE, _LINE, _CUBE = (2, 3, 6, 7), (2, 3, 9), (2, 3, 5, 6, 4)

_add(
    "CELU ELU GELU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid Mish PReLU ReLU ReLU6 SELU SiLU "
    "Sigmoid Softplus Softshrink Softsign Tanh Tanhshrink Identity Flatten RReLU Dropout AlphaDropout",
    _of((3, 5)),
)
_add("Softmax LogSoftmax Softmin", _of((3, 5), 1))
_add("GLU", _of((3, 6)))
_add("Threshold", _of((3, 5), 0.1, 20.0))
_add("Softmax2d Dropout2d FeatureAlphaDropout", _of(_IMAGE))
_add("Dropout1d", _of(_LINE))
_add("Dropout3d", _of(_CUBE))

_add("AdaptiveAvgPool1d AdaptiveMaxPool1d", _of(_LINE, 4))
_add("AdaptiveAvgPool2d AdaptiveMaxPool2d", _of(_IMAGE, (3, 2)))
_add("AdaptiveAvgPool3d AdaptiveMaxPool3d", _of(_CUBE, (2, 3, 2)))
_add("AvgPool1d MaxPool1d", _of(_LINE, 3, 2, 1))
_add("AvgPool2d MaxPool2d", _of(_IMAGE, 3, 2, 1))
_add("AvgPool3d MaxPool3d", _of(_CUBE, 2, 2))
_add("LPPool1d", _of(_LINE, 2, 3))
_add("LPPool2d", _of(_IMAGE, 2, 3))
_add("LPPool3d", _of(_CUBE, 2, 2))
_add("FractionalMaxPool2d", _of(_IMAGE, 2, output_size=(3, 3)))
_add("FractionalMaxPool3d", _of(_CUBE, 2, output_size=(3, 3, 2)))
for _dim, _size in ((1, (2, 3, 8)), (2, (2, 3, 6, 8)), (3, (1, 2, 4, 6, 4))):
    _pooled = getattr(nn.functional, f"max_pool{_dim}d")
    _add(f"MaxUnpool{_dim}d", lambda kind, p=_pooled, s=_size: (kind(2), p(torch.randn(s), 2, return_indices=True)))

_add("Conv1d ConvTranspose1d", _of(_LINE, 3, 4, 3, 2, padding=1))
_add("Conv2d ConvTranspose2d", _of(_IMAGE, 3, 4, 3, 2, padding=1))
_add("Conv3d ConvTranspose3d", _of(_CUBE, 3, 4, 3, 2, padding=1))
_add("LazyConv1d LazyConvTranspose1d", _of(_LINE, 4, 3))
_add("LazyConv2d LazyConvTranspose2d", _of(_IMAGE, 4, 3))
_add("LazyConv3d LazyConvTranspose3d", _of(_CUBE, 4, 3))
_add("LazyLinear", _of((3, 5), 4))
_add("Linear", _of((3, 5), 5, 4))
_add("Bilinear", lambda kind: (kind(5, 4, 3), (torch.randn(2, 5), torch.randn(2, 4))))
_add("Fold", _of((2, 12, 12), (4, 5), 2))
_add("Unfold", _of(_IMAGE, 2, padding=1))

_add("BatchNorm1d", _of(_LINE, 3))
_add("BatchNorm2d", _of(_IMAGE, 3))
_add("BatchNorm3d", _of(_CUBE, 3))
_add("LazyBatchNorm1d LazyInstanceNorm1d", _of(_LINE))
_add("LazyBatchNorm2d LazyInstanceNorm2d", _of(_IMAGE))
_add("LazyBatchNorm3d LazyInstanceNorm3d", _of(_CUBE))
_add("InstanceNorm1d", _of(_LINE, 3, affine=True, track_running_stats=True))
_add("InstanceNorm2d", _of(_IMAGE, 3, affine=True))
_add("InstanceNorm3d", _of(_CUBE, 3))
_add("GroupNorm", _of((2, 6, 5), 3, 6))
_add("LayerNorm RMSNorm", _of((3, 4, 5), (4, 5)))
_add("LocalResponseNorm CrossMapLRN2d", _of(_IMAGE, 2))

_add("ConstantPad1d", _of(_LINE, (1, 2), 0.5))
_add("ConstantPad2d", _of(_IMAGE, (1, 2, 0, 3), 0.5))
_add("ConstantPad3d", _of(_CUBE, 1, 0.5))
for _dim, _size in ((1, _LINE), (2, _IMAGE), (3, _CUBE)):
    _add(f"CircularPad{_dim}d ReflectionPad{_dim}d ReplicationPad{_dim}d ZeroPad{_dim}d", _of(_size, 2))

_add("ChannelShuffle", _of((2, 6, 3, 2), 3))
_add("PixelShuffle", _of((2, 8, 3, 2), 2))
_add("PixelUnshuffle", _of((2, 3, 4, 6), 2))
_add("Unflatten", _of((2, 6, 3), 1, (2, 3)))
_add("Upsample", _of(_IMAGE, scale_factor=2, mode="bicubic"))
_add("UpsamplingBilinear2d UpsamplingNearest2d", _of(_IMAGE, (9, 10)))

_add("Embedding", lambda kind: (kind(7, 4, padding_idx=1), (torch.tensor([[1, 0, 6], [2, 2, 5]]),)))
_add("EmbeddingBag", lambda kind: (kind(7, 4), (torch.tensor([1, 0, 6, 2, 2]), torch.tensor([0, 2, 3]))))
_add("CosineSimilarity PairwiseDistance", lambda kind: (kind(), (torch.randn(3, 5), torch.randn(3, 5))))

_classes = lambda: torch.tensor([1, 0, 4])  # noqa: E731
_rows = lambda: torch.randn(3, 5)  # noqa: E731
_likely = lambda: torch.rand(3, 5) * 0.8 + 0.1  # noqa: E731
_add("L1Loss MSELoss SmoothL1Loss HuberLoss", _loss(_rows, _rows))
_add("PoissonNLLLoss", _loss(_rows, _likely))
_add("BCELoss", _loss(_likely, _likely))
_add("BCEWithLogitsLoss MultiLabelSoftMarginLoss", _loss(_rows, _likely))
_add("CrossEntropyLoss", _loss(_rows, _classes, label_smoothing=0.1))
_add("NLLLoss MultiMarginLoss", _loss(_rows, _classes))
_add("NLLLoss2d", _loss(lambda: torch.randn(2, 3, 4, 5), lambda: torch.randint(0, 3, (2, 4, 5))))
_add("KLDivLoss", _loss(_rows, _likely, reduction="batchmean"))
_add("HingeEmbeddingLoss SoftMarginLoss", _loss(_rows, lambda: _signs(3, 5)))
_add("MultiLabelMarginLoss", _loss(_rows, lambda: torch.tensor([[1, 3, -1, 0, 0], [0, -1, 1, 1, 1], [4, 2, 1, 0, 3]])))
_add("CosineEmbeddingLoss", lambda kind: (kind(), (_rows(), _rows(), _signs(3))))
_add("MarginRankingLoss", lambda kind: (kind(0.1), (torch.randn(4), torch.randn(4), _signs(4))))
_add("GaussianNLLLoss", lambda kind: (kind(), (_rows(), _rows(), _likely())))
_add("TripletMarginLoss TripletMarginWithDistanceLoss", lambda kind: (kind(), (_rows(), _rows(), _rows())))
_add("AdaptiveLogSoftmaxWithLoss", lambda kind: (kind(6, 9, [4, 7]), (torch.randn(4, 6), torch.tensor([0, 5, 8, 3]))))
_add("LinearCrossEntropyLoss", lambda kind: (kind(6, 5), (torch.randn(3, 6), _classes())))
_add(
    "CTCLoss",
    lambda kind: (
        kind(),
        (
            torch.randn(6, 2, 5).log_softmax(-1),
            torch.tensor([[1, 2, 3], [4, 1, 1]]),
            torch.tensor([6, 5]),
            torch.tensor([3, 2]),
        ),
    ),
)

_add("RNN GRU LSTM", lambda kind: (kind(4, 5, 2, batch_first=True, bidirectional=True), (torch.randn(2, 3, 4),)))
_add("RNNCell GRUCell", lambda kind: (kind(4, 5), (torch.randn(2, 4), torch.randn(2, 5))))
_add("LSTMCell", lambda kind: (kind(4, 5), (torch.randn(2, 4), (torch.randn(2, 5), torch.randn(2, 5)))))

_add("MultiheadAttention", lambda kind: (kind(8, 2, batch_first=True), (torch.randn(2, 5, 8),) * 3))
_add("TransformerEncoderLayer", _of((2, 5, 8), 8, 2, 12, 0.0, batch_first=True))
_add(
    "TransformerEncoder",
    lambda kind: (kind(nn.TransformerEncoderLayer(8, 2, 12, 0.0, batch_first=True), 2), (torch.randn(2, 5, 8),)),
)
_add(
    "TransformerDecoderLayer",
    lambda kind: (kind(8, 2, 12, 0.0, batch_first=True), (torch.randn(2, 5, 8), torch.randn(2, 3, 8))),
)
_add(
    "TransformerDecoder",
    lambda kind: (
        kind(nn.TransformerDecoderLayer(8, 2, 12, 0.0, batch_first=True), 2),
        (torch.randn(2, 5, 8), torch.randn(2, 3, 8)),
    ),
)
_add(
    "Transformer",
    lambda kind: (
        kind(8, 2, 1, 1, 12, 0.0, batch_first=True),
        (torch.randn(2, 5, 8), torch.randn(2, 3, 8)),
    ),
)
_add("Sequential", lambda kind: (kind(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 2)), (torch.randn(3, 5),)))
