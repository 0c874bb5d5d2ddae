"""Products of 16-bit floats by warpgroups of sm_90a: on the simulator, and what PTX and ptxas say."""

from __future__ import annotations

import re
from math import prod

import pytest
import torch
from agreement_with_eager import compare
from cuda_simulator import SimulatedDevice
from gpu_models import Function
from torch.nn import functional as F

import pipeline
from pipeline.mlir import context_for, ir, walk
from pipeline.passes.gpu.matmul import warpgroup_matmul, warpgroup_mma
from pipeline.passmanager.pass_pipeline import PassPipeline
from pipeline.runtime.device.device_code import DeviceKernel
from pipeline.runtime.device.host_plan import row_major
from pipeline.targets.cuda import nvvm, ptx
from pipeline.targets.gpu.lower import TO_THREADS

TILES = pytest.mark.parametrize("tile", warpgroup_matmul.TILES, ids=lambda tile: f"{tile.rows}x{tile.columns}")


pytestmark = pytest.mark.usefixtures("simulator")


def _randn(*shape, seed=0, dtype=torch.bfloat16):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def _compile(function, *args, target="cuda:sm_90a"):
    return pipeline.compile(Function(function), args, target=target, cache=False)


def _check(function, *args, tolerance=2e-2):
    """Against the product in float32, rounded once."""
    executable = _compile(function, *args)
    wide = function(*(one.float() for one in args)).to(args[0].dtype)
    compare(executable(*args), wide, tolerance)
    text = executable.ir("ptx")
    assert "wgmma.mma_async" in text and "mma.sync.aligned.m16" not in text
    return text


@TILES
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_products(tile, dtype, monkeypatch):
    """Sizes that fill tiles, and that do not."""
    monkeypatch.setattr(warpgroup_matmul, "TILES", (tile,))
    for rows, inner, columns in ((tile.rows, 64, tile.columns), (tile.rows + 2, 104, tile.columns + 8)):
        a, b = _randn(rows, inner, dtype=dtype), _randn(inner, columns, seed=1, dtype=dtype)
        text = _check(lambda a, b: a @ b, a, b)
        assert f"m64n{tile.columns}k16.f32.{'bf16.bf16' if dtype == torch.bfloat16 else 'f16.f16'}" in text


@pytest.mark.parametrize(("rows", "inner", "columns"), [(33, 16, 32), (70, 37, 45), (64, 1000, 72)])
def test_odd_sizes(rows, inner, columns):
    """That no chunk of 16 bytes divides, of one step and of many."""
    text = _check(lambda a, b: a @ b, _randn(rows, inner), _randn(inner, columns, seed=1))
    assert ("cp.async.cg" in text) == (inner % 8 == 0 or columns % 8 == 0)


@TILES
@pytest.mark.parametrize("left", ["i, k", "k, i"])
@pytest.mark.parametrize("right", ["k, j", "j, k"])
def test_operands_as_they_lie(tile, left, right, monkeypatch):
    """The sum along the rows of either operand, or across: the layouts that wgmma calls K-major and MN-major."""
    monkeypatch.setattr(warpgroup_matmul, "TILES", (tile,))
    sizes = {"i": tile.rows + 8, "j": tile.columns + 8, "k": 136}
    shapes = [[sizes[dim] for dim in dims.split(", ")] for dims in (left, right, "i, j")]
    kinds = [
        f"memref<{'x'.join(map(str, shape))}x{kind}>"
        for shape, kind in zip(shapes, ("bf16", "bf16", "f32"), strict=True)
    ]
    with context_for(0), ir.Location.unknown():
        module = ir.Module.parse(
            f"""func.func @k(%a: {kinds[0]}, %b: {kinds[1]}, %c: {kinds[2]}) attributes {{pipeline.dispatch = "k"}} {{
              %zero = arith.constant 0.0 : f32
              linalg.fill ins(%zero : f32) outs(%c : {kinds[2]})
              linalg.generic {{indexing_maps = [affine_map<(i, j, k) -> ({left})>, affine_map<(i, j, k) -> ({right})>,
                  affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}}
                  ins(%a, %b : {kinds[0]}, {kinds[1]}) outs(%c : {kinds[2]}) {{
                ^bb0(%x: bf16, %y: bf16, %sum: f32):
                  %wide = arith.extf %x : bf16 to f32
                  %other = arith.extf %y : bf16 to f32
                  %product = arith.mulf %wide, %other : f32
                  %more = arith.addf %sum, %product : f32
                  linalg.yield %more : f32
              }}
              return
            }}"""
        )
        mapping = "map-to-threads{tensor-cores=true warpgroup-mma=true}"
        PassPipeline.parse(TO_THREADS.format(mapping=mapping)).run(module)
        nvvm.legalize(module, True, True, frozenset())
        llvm = nvvm.to_llvm(module)
        (function,) = walk(module, "func.func")
        number = {name: ir.IntegerAttr(function.attributes[f"pipeline.{name}"]).value
                  for name in ("block", "items", "threads", "shared")}  # fmt: skip
    assert f"p, 1, 1, {int(left == 'k, i')}, {int(right == 'k, j')}" in llvm
    dtypes = ("bfloat16", "bfloat16", "float32")
    arguments = tuple(("buffer", dtype, (), False, ()) for dtype in dtypes)
    device = SimulatedDevice([DeviceKernel("k", 0, arguments=arguments, **number)], llvm)
    a, b = _randn(*shapes[0]), _randn(*shapes[1], seed=1)
    views = []
    for shape, dtype, tensor in zip(shapes, dtypes, (a, b, None), strict=True):
        views.append(row_major(device.allocate(dtype, prod(shape)), dtype, tuple(shape)))
        if tensor is not None:
            device.upload(views[-1], tensor.view(torch.int16).numpy())
    device.launch(0, number["threads"], views)
    a, b = a.float() if left == "i, k" else a.float().t(), b.float() if right == "k, j" else b.float().t()
    torch.testing.assert_close(torch.from_numpy(device.download(views[-1:])[0]), a @ b, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("tile", [warpgroup_matmul.TILES[0], warpgroup_matmul.TILES[-1]])
def test_the_left_operand_in_registers(tile, monkeypatch):
    """As ldmatrix loads them, for products whose left operand a thread has computed."""

    def multiply(self, buffer, sums):
        rows, columns = self.operands
        right = columns.layout.descriptor(columns.shared, buffer)
        lefts = [warpgroup_mma.registers_of(rows.left(buffer, self.row, 0, depth)) for depth in range(0, 64, 16)]
        warpgroup_mma.fence()
        for number, left in enumerate(lefts):
            own = columns.layout.at_depth(right, 16 * number)
            sums = warpgroup_mma.multiply(sums, left, own, rows.element, (True, columns.along_sum))
        warpgroup_mma.commit()
        return sums

    monkeypatch.setattr(warpgroup_matmul, "TILES", (tile,))
    monkeypatch.setattr(warpgroup_matmul.WarpgroupEmitter, "_multiply", multiply)
    text = _check(lambda a, b: a @ b, _randn(136, 200), _randn(200, 72, seed=1))
    assert "ldmatrix" in text
    if ptx.can_assemble("90a"):
        _, said = ptx.assemble(text, "90a")
        assert "0 bytes spill stores" in said and "C7510" not in said


def test_batches_and_groups_of_blocks(monkeypatch):
    """More rows of blocks than are taken together, whose number is no multiple of that."""
    monkeypatch.setattr(warpgroup_matmul, "TILES", warpgroup_matmul.TILES[-1:])
    monkeypatch.setattr(warpgroup_matmul, "_ROWS_OF_BLOCKS", 2)
    _check(lambda a, b: a @ b, _randn(2, 264, 24), _randn(2, 24, 136, seed=1))


def test_what_is_behind_runs_on_the_fragments():
    """Bias, activation and a sum, each rounded as PyTorch rounds it; neighbours are stored together."""
    a, b, c, d = _randn(64, 32), _randn(32, 64, seed=1), _randn(64, seed=2), _randn(64, 64, seed=3)

    def function(a, b, c, d):
        return F.gelu(a @ b + c) + d

    executable = _compile(function, a, b, c, d)
    assert len(executable._code.launches) == 1 and "st.global.v2.b16" in executable.ir("ptx")
    compare(executable(a, b, c, d), function(a, b, c, d), 2e-2)


def test_what_lies_beyond_the_sum_is_not_read():
    """Infinities in the last column must not meet zeros that fill up a step: the result would be NaN."""
    a, b = _randn(40, 17), _randn(17, 40, seed=1)
    a[:, -1] = float("inf")
    b[-1] = b[-1].abs() + 1
    assert torch.isinf(_compile(lambda a, b: a @ b, a, b)(a, b)).all()


def test_convolution_as_a_product():
    x, w = _randn(2, 16, 9, 11), _randn(40, 16, 3, 3, seed=1)
    _check(lambda x, w: F.conv2d(x, w, padding=1, stride=2), x, w, tolerance=5e-2)


@TILES
def test_ptxas_takes_it(tile, monkeypatch):
    """With no spills, and with products that need not wait for each other."""
    monkeypatch.setattr(warpgroup_matmul, "TILES", (tile,))
    args = (_randn(512, 1024), _randn(1024, 512, seed=1), _randn(512))
    executable = _compile(lambda a, b, c: torch.relu(a @ b + c), *args)
    text = executable.ir("ptx")
    (launch,) = executable._code.launches
    assert ".target sm_90a" in text and ".local" not in text and text.count("wgmma.mma_async") == 4
    assert launch.shared == (tile.rows + tile.columns) * 128 * tile.steps and launch.block == tile.threads
    assert re.search(r"\.extern \.shared \.align 1024", text)
    if ptx.can_assemble("90a"):
        _, said = ptx.assemble(text, "90a")
        assert "0 bytes spill stores, 0 bytes spill loads" in said and "C7510" not in said
        assert all(int(count) <= 224 for count in re.findall(r"Used (\d+) registers", said))


def test_must_not_fire():
    """Float32, few rows, other architectures."""
    halves, floats = (_randn(64, 32), _randn(32, 64)), (_randn(64, 32).float(), _randn(32, 64).float())
    few = (_randn(8, 32), _randn(32, 64))
    for args, target in (
        (halves, "cuda:sm_90"),
        (floats, "cuda:sm_90a"),
        (floats, "cuda:sm_90a+tf32"),
        (few, "cuda:sm_90a"),
    ):
        assert "wgmma" not in _compile(lambda a, b: a @ b, *args, target=target).ir("ptx")


def _is_right(monkeypatch, name, replacement):
    """Whether a product of many steps comes out right on the simulator with a part of the protocol changed."""
    a, b = _randn(64, 640), _randn(640, 64, seed=1)
    with monkeypatch.context() as patch:
        if name is not None:
            patch.setattr(warpgroup_mma, name, replacement)
        found = _compile(lambda a, b: a @ b, a, b)(a, b).float()
    return torch.allclose(found, a.float() @ b.float(), rtol=2e-2, atol=0.25)


def test_what_is_missing_shows(monkeypatch):
    """The simulator sees that a fence is missing, and that a tile is written before its product has been waited for."""
    wait = warpgroup_mma.wait
    assert _is_right(monkeypatch, None, None)
    assert not _is_right(monkeypatch, "publish", lambda: None)
    assert not _is_right(monkeypatch, "fence", lambda: None)
    assert not _is_right(monkeypatch, "wait", lambda pending: wait(pending + 5))
