"""What is timed: plain modules of PyTorch with random weights, and their inputs; nothing is downloaded.

`WORKLOADS` has them by name; the modules that no library brings are in modules.py. `make` gives the same weights and
inputs in every process. Floating point is f32. Only the models whose names say so need transformers.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

sys.path.append(str(Path(__file__).parents[1] / "examples"))  # scripts, not a package
sys.path.append(str(Path(__file__).parents[1] / "tests" / "models"))

from modules import (
    Cond,
    CondInPython,
    ConvNormRelu,
    Encoder,
    FeedForward,
    Field,
    Filter,
    FloatChain,
    FloatChainInPlace,
    InDtype,
    IntChain,
    IntChainInPlace,
    LSTMCell,
    Outputs,
    PackedLinear,
    QuantizedConv,
    QuantizedLinear,
    RNNCell,
    RNNUnrolled,
    RNNWhile,
    Spectrogram,
    Transform,
)
from resnet import ResNet18
from torchvision_ops import define_missing_operators

Made = tuple[nn.Module, tuple[torch.Tensor, ...]]


@dataclass(frozen=True)
class Workload:
    """A module and its inputs.

    Attributes:
        create: makes them, after the random numbers have been seeded.
        in_python: makes the same computation with Python's own control flow, for what runs Python; else `create`.
        flops: floating-point operations of a call; a multiply-add is two, elementwise work is not counted.
        bytes: of inputs, weights and results, each once.
    """

    create: Callable[[], Made]
    in_python: Callable[[], Made] | None = None
    flops: float = 0.0
    bytes: float = 0.0

    def make(self, in_python: bool = False) -> Made:
        """The module, for inference, and its inputs."""
        torch.manual_seed(0)
        model, inputs = (self.in_python or self.create)() if in_python else self.create()
        model.eval()  # of an exported graph it returns nothing
        return model.requires_grad_(False), inputs

    def expected(self) -> tuple[torch.Tensor, ...]:
        """The results of a call, by PyTorch eager in float64."""
        model, inputs = self.make(in_python=True)
        results = model.double()(*(one.double() if one.is_floating_point() else one for one in inputs))
        return results if isinstance(results, tuple) else (results,)

    def measures(self, results: Sequence[Any], wanted: Sequence[torch.Tensor]) -> dict[str, float]:
        """What else there is to say of arrays that should be those of `expected`."""
        return {}


def _with_statistics(model: nn.Module) -> nn.Module:
    """The model, its batch norms as if trained: with the initial ones a wrong one would go unnoticed."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            for tensor, low, high in ((module.running_var, 0.5, 1.5), (module.weight, 0.5, 1.5)):
                nn.init.uniform_(tensor, low, high)
            for tensor in (module.running_mean, module.bias):
                nn.init.normal_(tensor, 0, 0.1)
    return model


def _conv(channels_in: int, channels: int, kernel: int, size: int, groups: int = 1) -> Workload:
    weights = channels * kernel**2 * channels_in // groups
    return Workload(
        lambda: (
            _with_statistics(ConvNormRelu(channels_in, channels, kernel, groups)),
            (torch.randn(1, channels_in, size, size),),
        ),
        flops=2 * size**2 * weights,
        bytes=4 * ((channels_in + channels) * size**2 + weights),
    )


def _states(number: int) -> tuple[torch.Tensor, ...]:
    return tuple(torch.randn(1, 128) for _ in range(number))


def _integers(size: int = 4000) -> tuple[torch.Tensor, ...]:
    return tuple(torch.randint(-1000, 1000, (size, size), dtype=t) for t in (torch.int32, torch.int64, torch.int32))


def _floats(size: int = 4000) -> tuple[torch.Tensor, ...]:
    return tuple(torch.randn(size, size) for _ in range(3))


def _mobilenet() -> Made:
    define_missing_operators()  # transformers imports torchvision where there is one
    from transformers import MobileNetV2Config, MobileNetV2ForImageClassification

    model = _with_statistics(MobileNetV2ForImageClassification(MobileNetV2Config()))
    return Field(model, "logits"), (torch.randn(1, 3, 224, 224),)


def _bert() -> Made:
    define_missing_operators()  # transformers imports torchvision where there is one
    from transformers import BertConfig, BertModel

    model = BertModel(BertConfig(), add_pooling_layer=False)
    return Field(model, "last_hidden_state"), (torch.randint(0, 30000, (1, 128)),)


def _gpt2() -> Made:
    define_missing_operators()  # transformers imports torchvision where there is one
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(use_cache=False))
    return Field(model, "logits", use_cache=False), (torch.randint(0, 50000, (1, 64)),)


def _mlp() -> Made:
    layers = (nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    return nn.Sequential(*layers), (torch.randn(64, 784),)


def _layer_norm() -> Made:
    model = nn.LayerNorm(1024)
    nn.init.uniform_(model.weight, 0.5, 1.5)
    nn.init.normal_(model.bias)
    return model, (torch.randn(4096, 1024),)


def _recurrent(kind: type[nn.RNNBase], width: int, batch: int, layers: int = 1, steps: int = 160) -> Workload:
    """A net as wide as its input, over so many steps."""
    gates = 4 if kind is nn.LSTM else 3
    weights = layers * gates * 2 * width * width
    return Workload(
        lambda: (Outputs(kind(width, width, layers)), (torch.randn(steps, batch, width),)),
        flops=2 * steps * batch * weights,
        bytes=4 * (weights + 2 * steps * batch * width),
    )


def _transforms(rows: int, n: int, kind: Callable[[], nn.Module], of_pairs: bool) -> Workload:
    """5 n log2 n operations a transform of complex numbers; `kind` does one of them, or two of half the work."""
    shape = (rows, n, 2) if of_pairs else (rows, n)
    return Workload(lambda: (kind(), (torch.randn(shape),)), flops=5 * rows * n * math.log2(n), bytes=16 * rows * n)


def _quantized(
    rows: int,
    length: int,
    hidden: int,
    group: int | None = None,
    of_bytes: bool = False,
    bits: int = 8,
    dtype: torch.dtype = torch.float32,
) -> Workload:
    """A feed-forward layer of two of those."""

    def make() -> Made:
        layers = [QuantizedLinear(*sizes, group, of_bytes, bits) for sizes in ((length, hidden), (hidden, length))]
        return InDtype(nn.Sequential(layers[0], nn.SiLU(), layers[1]), dtype), (torch.randn(rows, length),)

    return Workload(make, flops=4 * rows * length * hidden, bytes=2 * length * hidden * bits / 8)


def _packed(rows: int, length: int, hidden: int) -> Workload:
    """The same of weights that are taken out of integers."""

    def make() -> Made:
        layers = [PackedLinear(*sizes, 128) for sizes in ((length, hidden), (hidden, length))]
        return nn.Sequential(layers[0], nn.SiLU(), layers[1]), (torch.randn(rows, length),)

    return Workload(make, flops=4 * rows * length * hidden, bytes=length * hidden)


def _quantized_conv(channels: int, filters: int, kernel: int, size: int, groups: int = 1) -> Workload:
    """A convolution of bytes, on an image of size x size."""
    weights = filters * channels // groups * kernel**2
    return Workload(
        lambda: (
            QuantizedConv(channels, filters, kernel, groups),
            (torch.randint(0, 256, (1, size, size, channels), dtype=torch.uint8),),
        ),
        flops=2 * weights * size**2,
        bytes=weights + (channels + filters) * size**2,
    )


@dataclass(frozen=True)
class QuantizedNetwork(Workload):
    """A network of bytes: judged by PyTorch eager in float32, in which its scales were found."""

    def expected(self) -> tuple[torch.Tensor, ...]:
        model, inputs = self.make(in_python=True)
        return (model(*inputs),)


def _by_pt2e(create: Callable[[], Made]) -> Made:
    """A model with static scales, as torchao's export quantization for x86 makes it of the example."""
    from torchao.quantization.pt2e import allow_exported_model_train_eval
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    model, inputs = create()
    graph = torch.export.export(model.eval(), inputs).module()
    quantizer = x86.X86InductorQuantizer().set_global(x86.get_default_x86_inductor_quantization_config())
    prepared = prepare_pt2e(graph, quantizer)
    prepared(*inputs)
    return allow_exported_model_train_eval(convert_pt2e(prepared)), inputs


def _image_like() -> tuple[torch.Tensor, ...]:
    return (torch.randn(1024, 1024) + 0.1,)


def _sequence() -> tuple[torch.Tensor, ...]:
    return torch.randn(64, 1, 128), torch.randn(1, 128)


_RNN = {"flops": 64 * 4 * 128 * 128, "bytes": 4 * (2 * 128 * 128 + 64 * 128)}
_FEED_FORWARD = 2 * 2 * 128 * 768 * 3072
_ATTENTION = 2 * 128 * 768 * 768 * 4 + 2 * 2 * 128 * 128 * 768
_LAYER = 12 * 768 * 768  # weights of a layer of BERT-base or GPT-2
_MLP = 784 * 512 + 512 * 512 + 512 * 10
_ROWS = 4096 * 1024 * 8

WORKLOADS = {
    "W1_weenet": _conv(64, 64, 3, 128, 64),
    "W2a_conv1x1": _conv(128, 256, 1, 28),
    "W2b_dwconv": _conv(512, 512, 3, 14, 512),
    "W2c_rnncell": Workload(lambda: (RNNCell(), _states(2)), flops=4 * 128 * 128, bytes=8 * 128 * 128),
    "W2d_lstmcell": Workload(lambda: (LSTMCell(), _states(3)), flops=16 * 128 * 128, bytes=32 * 128 * 128),
    "W3_conv3x3": _conv(64, 64, 3, 56),
    "W4_ffn": Workload(
        lambda: (FeedForward(), (torch.randn(128, 768),)),
        flops=_FEED_FORWARD,
        bytes=4 * (2 * 768 * 3072 + 2 * 128 * 768),
    ),
    "W5_encoder": Workload(
        lambda: (Encoder(), (torch.randn(1, 128, 768),)),
        flops=_FEED_FORWARD + _ATTENTION,
        bytes=4 * (_LAYER + 2 * 128 * 768),
    ),
    "W6a_int": Workload(lambda: (IntChain(), _integers()), bytes=4000**2 * 20),
    "W6b_int_inplace": Workload(lambda: (IntChainInPlace(), _integers()), bytes=4000**2 * 20),
    "W6c_float": Workload(lambda: (FloatChain(), _floats()), bytes=4000**2 * 16),
    "W6d_float_inplace": Workload(lambda: (FloatChainInPlace(), _floats()), bytes=4000**2 * 16),
    "W7a_softmax": Workload(lambda: (nn.Softmax(-1), (torch.randn(4096, 1024),)), bytes=_ROWS),
    "W7b_layernorm": Workload(_layer_norm, bytes=_ROWS),
    "W8a_resnet18": Workload(
        lambda: (_with_statistics(ResNet18()), (torch.randn(1, 3, 224, 224),)), flops=3.63e9, bytes=4 * 11.7e6
    ),
    "W8b_mobilenetv2": Workload(_mobilenet, flops=0.60e9, bytes=4 * 3.5e6),
    "W8c_bert": Workload(_bert, flops=12 * (2 * 128 * _LAYER + 4 * 128 * 128 * 768), bytes=4 * 12 * _LAYER),
    "W8d_gpt2": Workload(
        _gpt2,
        flops=12 * (2 * 64 * _LAYER + 4 * 64 * 64 * 768) + 2 * 64 * 768 * 50257,
        bytes=4 * (12 * _LAYER + 768 * 50257),
    ),
    "W8e_mlp": Workload(_mlp, flops=2 * 64 * _MLP, bytes=4 * _MLP),
    "W9a_cond": Workload(
        lambda: (Cond(), _image_like()), lambda: (CondInPython(), _image_like()), bytes=1024 * 1024 * 8
    ),
    "W9b_rnn64_unrolled": Workload(lambda: (RNNUnrolled(), _sequence()), **_RNN),
    "W9c_rnn64_while": Workload(lambda: (RNNWhile(), _sequence()), lambda: (RNNUnrolled(), _sequence()), **_RNN),
    "W10a_lstm128": _recurrent(nn.LSTM, 128, 1),
    "W10b_lstm128_batch8": _recurrent(nn.LSTM, 128, 8),
    "W10c_lstm512": _recurrent(nn.LSTM, 512, 1),
    "W10d_lstm1024": _recurrent(nn.LSTM, 1024, 1),
    "W10e_lstm1024_batch8": _recurrent(nn.LSTM, 1024, 8),
    "W10f_gru256_3layers": _recurrent(nn.GRU, 256, 1, 3),
    "W10g_lstm256": _recurrent(nn.LSTM, 256, 1),
    "W10h_lstm256_batch8": _recurrent(nn.LSTM, 256, 8),
    "W10i_lstm512_batch8": _recurrent(nn.LSTM, 512, 8),
    "W11a_fft1024": _transforms(64, 1024, Transform, of_pairs=True),
    "W11b_filter4096": _transforms(64, 4096, lambda: Filter(4096), of_pairs=False),
    "W11c_spectrogram400": Workload(
        lambda: (Spectrogram(400, 160), (torch.randn(1, 160000),)),
        flops=2.5 * 1001 * 400 * math.log2(400),
        bytes=4 * (160000 + 1001 * 201),
    ),
    "W12a_int8_row": _quantized(1, 2048, 5632),
    "W12b_int8_groups_row": _quantized(1, 2048, 5632, 32),
    "W12c_bytes_row": _quantized(1, 2048, 5632, of_bytes=True),
    "W12d_bytes_512": _quantized(512, 768, 3072, of_bytes=True),
    "W12e_int4_row": _quantized(1, 2048, 5632, 32, bits=4),
    "W12f_int4_8rows": _quantized(8, 2048, 5632, 32, bits=4),
    "W12g_int4_512": _quantized(512, 768, 3072, 32, bits=4),
    "W12h_int4_bytes_row": _quantized(1, 2048, 5632, 128, of_bytes=True, bits=4),
    "W12i_int4_bytes_8rows": _quantized(8, 2048, 5632, 128, of_bytes=True, bits=4),
    "W12j_int4_bytes_512": _quantized(512, 768, 3072, 128, of_bytes=True, bits=4),
    "W12k_int8_groups_bytes_row": _quantized(1, 2048, 5632, 128, of_bytes=True),
    "W12l_gptq_row": _packed(1, 2048, 5632),
    "W12m_bytes_conv1x1": _quantized_conv(256, 64, 1, 56),
    "W12n_bytes_conv1x1_wide": _quantized_conv(64, 256, 1, 56),
    "W12o_bytes_conv3x3": _quantized_conv(128, 128, 3, 28),
    "W12p_bytes_dwconv": _quantized_conv(144, 144, 3, 56, 144),
    "W12r_int8_bf16_row": _quantized(1, 2048, 5632, dtype=torch.bfloat16),
    "W12s_int8_bf16_512": _quantized(512, 768, 3072, dtype=torch.bfloat16),
    "W12q_bytes_mobilenetv2": QuantizedNetwork(lambda: _by_pt2e(_mobilenet), flops=0.60e9, bytes=3.5e6),
}
