"""Models as torchao quantizes them, through pipeline.compile and torch.compile: eager's results, from their bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
import torchao.quantization as ao
from torch import nn
from torchao.quantization.granularity import PerGroup
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

import pipeline
from pipeline.runtime.executable import Executable
from pipeline.runtime.native.cpu_features import host_features

#: What reads bytes.
PASSES = ("contract-in-int8", "fuse-dequantization")


class Gated(nn.Module):
    """A gated layer of a transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.gate, self.down = nn.Linear(128, 256), nn.Linear(128, 256, bias=False), nn.Linear(256, 128)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


CONFIGS: dict[str, Callable[[], object]] = {
    "int8 weights": ao.Int8WeightOnlyConfig,
    "int8 weights in groups": lambda: ao.Int8WeightOnlyConfig(granularity=PerGroup(64)),
    "int4 weights in groups": lambda: ao.IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32)),
    "int8 data and weights": ao.Int8DynamicActivationInt8WeightConfig,
    "int8 data with zero points": lambda: ao.Int8DynamicActivationInt8WeightConfig(
        act_mapping_type=ao.MappingType.ASYMMETRIC
    ),
    "int8 data, int4 weights": lambda: ao.Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int4, weight_granularity=PerGroup(32)
    ),
}


@pytest.fixture(autouse=True)
def without_gradients() -> Iterator[None]:
    torch.manual_seed(0)
    torch._dynamo.reset()
    with torch.no_grad():
        yield


@pytest.fixture(autouse=True, scope="module")
def exact_products_of_bytes() -> Iterator[None]:
    """Eager's are so where the CPU has dot products of bytes; elsewhere oneDNN adds two products up in 16 bits."""
    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl("_int_mm", lambda a, b: a.int() @ b.int(), "CPU")
        yield


def quantized(config: str, dtype: torch.dtype = torch.float32) -> nn.Module:
    """The layer, quantized by torchao."""
    model = Gated().eval().to(dtype)
    ao.quantize_(model, CONFIGS[config]())
    return model


def exported(dynamic: bool, x: torch.Tensor) -> nn.Module:
    """The layer, quantized by PT2E."""
    graph = torch.export.export(Gated().eval(), (x,)).module()
    config = x86.get_default_x86_inductor_quantization_config(is_dynamic=dynamic)
    prepared = prepare_pt2e(graph, x86.X86InductorQuantizer().set_global(config))
    prepared(x)
    return convert_pt2e(prepared)


def read_bytes(executable: pipeline.Executable) -> int:
    """How many products read their weights as bytes."""
    return len([remark for remark in executable.remarks if remark.kind == "passed" and remark.pass_name in PASSES])


def check(got: torch.Tensor, expected: torch.Tensor, steps: float) -> None:
    """Results are eager's but for some steps of a quantization in between."""
    assert (got - expected).abs().max() <= steps * expected.abs().max()


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("config", CONFIGS)
def test_torchao(config: str, rows: int) -> None:
    model, x = quantized(config), torch.randn(rows, 128)
    executable = pipeline.compile(model, (x,), fallback="error")
    assert read_bytes(executable) >= 3
    check(executable(x), model(x), 0.01)


@pytest.mark.parametrize("config", CONFIGS)
def test_torchao_with_torch_compile(config: str) -> None:
    model, x = quantized(config), torch.randn(3, 128)
    compiled = torch.compile(model, backend="pipeline", options={"fallback": "error"})
    check(compiled(x), model(x), 0.01)
    (executable,) = pipeline.executables(compiled)
    assert read_bytes(executable) >= 3
    assert {weight.type.dtype for weight in executable.signature.weights} >= {"int8"}


def run_by(model: nn.Module, x: torch.Tensor, how: str) -> tuple[Callable[[torch.Tensor], torch.Tensor], Executable]:
    """What runs a model, by `pipeline.compile` or torch.compile, and its executable."""
    if how == "compile":
        executable = pipeline.compile(model, (x,), fallback="error")
        return executable, executable
    run = torch.compile(model, backend="pipeline", options={"fallback": "error"})
    run(x)
    (executable,) = pipeline.executables(run)
    return run, executable


@pytest.mark.parametrize("config", ["int4 weights in groups", "int8 data, int4 weights"])
@pytest.mark.parametrize("how", ["compile", "torch.compile"])
def test_four_bits_are_kept_two_to_a_byte(config: str, how: str) -> None:
    model, x = quantized(config), torch.randn(1, 128)
    run, executable = run_by(model, x, how)
    check(run(x), model(x), 0.01)
    packed = [remark for remark in executable.remarks if remark.pass_name == "pack-nibbles"]
    assert [remark.kind for remark in packed] == ["passed"] * 3
    weights = 3 * 128 * 256
    assert executable.memory.prepared <= weights * (0.5 + 5 / 32) + 512  # scales of f32 and zero points of bytes
    with torch.no_grad():
        held = model.down.weight.qdata
        held[3, 5] = 9
    with pytest.raises(pipeline.PipelineError, match="is not in its range, -8 to 7"):
        run(x)
    with torch.no_grad():
        held[3, 5] = -8
    check(run(x), model(x), 0.01)


def test_bytes_that_change_are_prepared_again() -> None:
    model, x = quantized("int8 weights"), torch.randn(3, 128)
    compiled = torch.compile(model, backend="pipeline")
    check(compiled(x), model(x), 0.01)
    attributes, _ = model.down.weight.__tensor_flatten__()
    held = [getattr(model.down.weight, name) for name in attributes]
    (data,) = [tensor for tensor in held if tensor.numel() == 128 * 256]
    data.copy_(data.flip(1))
    check(compiled(x), model(x), 0.01)


def test_another_model_of_the_class() -> None:
    first, second, x = quantized("int8 weights"), quantized("int8 weights"), torch.randn(3, 128)
    torch._dynamo.reset()
    for model in (first, second):
        compiled = torch.compile(model, backend="pipeline")
        check(compiled(x), model(x), 0.01)


@pytest.mark.parametrize("config", ["int8 weights", "int8 data and weights", "int4 weights in groups"])
def test_models_in_bf16(config: str) -> None:
    model, x = quantized(config, torch.bfloat16), torch.randn(3, 128).bfloat16()
    executable = pipeline.compile(model, (x,), fallback="error")
    check(executable(x).float(), model(x).float(), 0.03)


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_pt2e(dynamic: bool) -> None:
    x = torch.randn(4, 128)
    model = exported(dynamic, x)
    executable = pipeline.compile(model, (x,), fallback="error")
    assert read_bytes(executable) >= 3
    check(executable(x), model(x), 0.02)


class Residual(nn.Module):
    """Convolutions of all kinds, a residual and pools, as of a network for images."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.pool = nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.MaxPool2d(3, 2, 1)
        self.wide, self.depthwise = nn.Conv2d(16, 40, 1), nn.Conv2d(40, 40, 3, padding=1, groups=40)
        self.narrow, self.short = nn.Conv2d(40, 24, 1), nn.Conv2d(16, 24, 1)
        self.last = nn.Linear(24, 10)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        x = self.pool(nn.functional.relu(self.first(input)))
        y = nn.functional.relu6(self.depthwise(nn.functional.relu6(self.wide(x))))
        y = nn.functional.relu(self.narrow(y) + self.short(x))
        return self.last(nn.functional.adaptive_avg_pool2d(y, 1).flatten(1))


def with_static_scales(net: nn.Module, x: torch.Tensor) -> nn.Module:
    """A network as PT2E quantizes it, on one batch."""
    graph = torch.export.export(net.eval(), (x,)).module()
    quantizer = x86.X86InductorQuantizer().set_global(x86.get_default_x86_inductor_quantization_config())
    prepared = prepare_pt2e(graph, quantizer)
    prepared(x)
    return convert_pt2e(prepared)


CONVOLUTIONS = 5 if {"avx512f", "avx512vnni"} <= host_features() else 0


@pytest.mark.parametrize("how", ["compile", "torch.compile"])
def test_pt2e_with_convolutions(how: str) -> None:
    x = torch.randn(2, 3, 33, 35)
    model = with_static_scales(Residual(), x)
    run, executable = run_by(model, x, how)
    convolved = [remark for remark in executable.remarks if remark.op.startswith("linalg.") and "conv_2d" in remark.op]
    bytes_ = [remark for remark in convolved if (remark.pass_name, remark.kind) == (PASSES[0], "passed")]
    assert len(bytes_) == CONVOLUTIONS
    check(run(x), model(x), 0.03)


def test_zero_points_that_were_zeros_are_checked() -> None:
    x = torch.randn(2, 3, 33, 35)
    model = with_static_scales(Residual(), x)
    executable = pipeline.compile(model, (x,), fallback="error")
    check(executable(x), model(x), 0.03)
    points = [buffer for name, buffer in model.named_buffers() if "zero_point" in name]
    points[0][1] = 3
    with pytest.raises(pipeline.PipelineError, match="zero no longer"):
        executable(x)
    again = pipeline.compile(model, (x,), fallback="error")
    check(again(x), model(x), 0.03)
    points[0].zero_()
    check(executable(x), model(x), 0.03)
