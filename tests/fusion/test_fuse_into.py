"""fuse_into: groups that users name, and everything that a group may become, in branches and loops too."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
from fusion.shared_library import write_library
from fusion.support import compiled, groups
from torch import nn
from torch._higher_order_ops.while_loop import while_loop

import pipeline
from pipeline import ArtifactError, OptionError, PipelineError, fuse_into
from pipeline.fusions import Callback, Emitter, External, Intrinsic
from pipeline.mlir import linalg, tensor

DESCRIPTOR1 = "{ptr, ptr, i64, [1 x i64], [1 x i64]}"
DESCRIPTOR2 = "{ptr, ptr, i64, [2 x i64], [2 x i64]}"

ADD_RELU = f"""
define void @add_relu(ptr %a, ptr %b, ptr %o) nounwind {{
entry:
  %ap = getelementptr {DESCRIPTOR1}, ptr %a, i64 0, i32 1
  %ad = load ptr, ptr %ap
  %bp = getelementptr {DESCRIPTOR1}, ptr %b, i64 0, i32 1
  %bd = load ptr, ptr %bp
  %op = getelementptr {DESCRIPTOR1}, ptr %o, i64 0, i32 1
  %od = load ptr, ptr %op
  %np = getelementptr {DESCRIPTOR1}, ptr %o, i64 0, i32 3, i64 0
  %n = load i64, ptr %np
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %body]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %end
body:
  %ai = getelementptr float, ptr %ad, i64 %i
  %x = load float, ptr %ai
  %bi = getelementptr float, ptr %bd, i64 %i
  %y = load float, ptr %bi
  %s = fadd float %x, %y
  %positive = fcmp ogt float %s, 0.0
  %r = select i1 %positive, float %s, float 0.0
  %oi = getelementptr float, ptr %od, i64 %i
  store float %r, ptr %oi
  %next = add i64 %i, 1
  br label %head
end:
  ret void
}}
"""

#: Takes a and b of any size, a bias, the result, and the numbers of the steps; the last one: 0 relu, 1 negation.
GEMM = f"""
define void @gemm(ptr %a, ptr %b, ptr %c, ptr %o, i64 %s0, i64 %s1, i64 %activation) nounwind {{
entry:
  %ap = getelementptr {DESCRIPTOR2}, ptr %a, i64 0, i32 1
  %ad = load ptr, ptr %ap
  %bp = getelementptr {DESCRIPTOR2}, ptr %b, i64 0, i32 1
  %bd = load ptr, ptr %bp
  %cp = getelementptr {DESCRIPTOR1}, ptr %c, i64 0, i32 1
  %cd = load ptr, ptr %cp
  %op = getelementptr {DESCRIPTOR2}, ptr %o, i64 0, i32 1
  %od = load ptr, ptr %op
  %mp = getelementptr {DESCRIPTOR2}, ptr %a, i64 0, i32 3, i64 0
  %m = load i64, ptr %mp
  %kp = getelementptr {DESCRIPTOR2}, ptr %a, i64 0, i32 3, i64 1
  %k = load i64, ptr %kp
  %np = getelementptr {DESCRIPTOR2}, ptr %b, i64 0, i32 3, i64 1
  %n = load i64, ptr %np
  %all = mul i64 %m, %n
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %done]
  %more = icmp slt i64 %i, %all
  br i1 %more, label %start, label %end
start:
  %row = sdiv i64 %i, %n
  %column = srem i64 %i, %n
  %ci = getelementptr float, ptr %cd, i64 %column
  %bias = load float, ptr %ci
  br label %sum
sum:
  %j = phi i64 [0, %start], [%j2, %term]
  %acc = phi float [%bias, %start], [%acc2, %term]
  %inside = icmp slt i64 %j, %k
  br i1 %inside, label %term, label %done
term:
  %arow = mul i64 %row, %k
  %ai = add i64 %arow, %j
  %ae = getelementptr float, ptr %ad, i64 %ai
  %x = load float, ptr %ae
  %brow = mul i64 %j, %n
  %bi = add i64 %brow, %column
  %be = getelementptr float, ptr %bd, i64 %bi
  %y = load float, ptr %be
  %p = fmul float %x, %y
  %acc2 = fadd float %acc, %p
  %j2 = add i64 %j, 1
  br label %sum
done:
  %positive = fcmp ogt float %acc, 0.0
  %relu = select i1 %positive, float %acc, float 0.0
  %zero = fsub float %acc, %acc
  %negated = fsub float %zero, %acc
  %is_relu = icmp eq i64 %activation, 0
  %r = select i1 %is_relu, float %relu, float %negated
  %oe = getelementptr float, ptr %od, i64 %i
  store float %r, ptr %oe
  %next = add i64 %i, 1
  br label %head
end:
  ret void
}}
"""


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def run(function, *args, **options):
    return compiled(Function(function), *args, **options)


def labels(exe):
    return [label for label, _ in groups(exe)]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("libraries")
    write_library(folder / "add_relu.so", ADD_RELU, "add_relu")
    write_library(folder / "gemm.so", GEMM, "gemm")
    return folder


X, Y = (torch.randn(6, generator=torch.Generator().manual_seed(seed)) for seed in (0, 1))


# Groups


def test_ops_that_are_named_are_a_kernel_of_their_own():
    exe = run(lambda x, y: torch.relu(x.exp() + y).sin(), X, Y, fusions=[fuse_into(["add", "relu"], name="mine")])
    assert labels(exe) == ["exp", "mine", "sin"]
    assert [kernel.name for kernel in exe.kernels] == ["exp_0", "mine_0", "sin_0"]
    assert exe.kernels[1].words == ("add", "relu")


def test_must_not_fire_on_ops_that_nobody_named():
    mine = fuse_into(["tanh", "conv2d"], name="mine")
    plain, custom = (run(lambda x: torch.relu(x.exp()).sin(), X, fusions=one) for one in ([], [mine]))
    assert labels(plain) == labels(custom)


def test_names_of_pytorch_and_predicates():
    def function(x):
        return torch.sigmoid(x).exp()

    assert labels(run(function, X, fusions=[fuse_into(["sigmoid"], name="mine")])) == ["mine", "exp"]
    is_exp = fuse_into(lambda op: op.words == ("exp",) and op.dtype == "f32", name="mine")
    assert labels(run(function, X, fusions=[is_exp]))[-1] == "mine"


def test_groups_are_as_large_as_they_can_be_and_convex():
    def function(x):
        a = x.exp()
        return a.sin() * a.tanh()  # exp and mul with sin make a cycle through tanh

    exe = run(function, X, fusions=[fuse_into(["exp", "sin", "mul"], name="mine")])
    assert sorted(labels(exe)) == ["mine", "mine", "tanh"]
    reasons = {remark.key for remark in exe.remarks if remark.pass_name == "fuse-into" and remark.kind == "missed"}
    assert reasons == {"cycle"}
    everything = run(function, X, fusions=[fuse_into(["exp", "sin", "mul", "tanh"], name="mine")])
    assert labels(everything) == ["mine"]


def test_the_first_fusion_that_wants_an_op_has_it():
    first, second = fuse_into(["exp", "sin"], name="first"), fuse_into(["sin", "cos"], name="second")
    assert labels(run(lambda x: x.exp().sin().cos(), X, fusions=[first, second])) == ["first", "second"]


def test_a_barrier_is_not_crossed():
    exe = run(lambda x: pipeline.stop_fusion(x.exp()).sin(), X, fusions=[fuse_into(["exp", "sin"], name="mine")])
    assert labels(exe) == ["mine", "mine"]


def test_through_reshapes():
    def function(x):
        return x.exp().reshape(3, 2).sin(), x.exp().reshape(2, 3).cos() + x.reshape(2, 3)

    exe = run(function, X, fusions=[fuse_into(["exp", "sin"], name="mine")])
    assert labels(exe).count("mine") == 1


def test_several_results_and_captured_values_in_branches_and_loops():
    mine = fuse_into(["exp", "add", "mul"], name="mine")

    def branches(c, x, y):
        def yes(x):
            e = x.exp() + y
            return e, e * x

        return torch.cond(c, yes, lambda x: (x.sin(), x + y), (x,))

    for c in (True, False):
        exe = run(branches, torch.tensor(c), X, Y, fusions=[mine])
        assert labels(exe).count("mine") == 2

    def loop(x, y):
        return while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, (x * y + y).exp().tanh()), (torch.tensor(0), x))[1]

    assert "mine" in labels(run(loop, X, Y, fusions=[mine]))


# Functions of a library


def test_a_c_function(library, tmp_path):
    external = External("add_relu", library / "add_relu.so")
    exe = run(
        lambda x, y: torch.relu(x.exp() + y).sin(),
        X,
        Y,
        fusions=[fuse_into(["add", "relu"], name="c", becomes=external)],
    )
    assert labels(exe) == ["exp", "c", "sin"]
    exe.save(tmp_path / "model.pipeline")
    loaded = pipeline.load(tmp_path / "model.pipeline")
    np.testing.assert_allclose(loaded(X.numpy(), Y.numpy()), torch.relu(X.exp() + Y).sin().numpy(), rtol=1e-6)


def test_a_c_function_in_a_branch_and_on_dynamic_sizes(library):
    external = External("add_relu", library / "add_relu.so")
    mine = fuse_into(["add", "relu"], name="c", becomes=external)

    def branches(c, x, y):
        return torch.cond(c, lambda x: torch.relu(x + y), lambda x: x * y, (x,))

    for c in (True, False):
        run(branches, torch.tensor(c), X, Y, fusions=[mine])
    dim = torch.export.Dim("n")
    exe = pipeline.compile(
        Function(lambda x, y: torch.relu(x + y) * 2), (X, Y), dynamic_shapes=(({0: dim}, {0: dim}),), fusions=[mine]
    )
    for size in (2, 6, 33):
        x, y = torch.randn(size), torch.randn(size)
        torch.testing.assert_close(exe(x, y), torch.relu(x + y) * 2)


def test_libraries_and_functions_that_are_not_there(library, tmp_path):
    def with_(external):
        return run(lambda x, y: x + y, X, Y, fusions=[fuse_into(["add"], name="c", becomes=external)])

    with pytest.raises(ArtifactError, match="the library of add_relu cannot be loaded: .*nowhere.so"):
        with_(External("add_relu", tmp_path / "nowhere.so"))
    with pytest.raises(ArtifactError, match="add_relu.so has no function sub_relu"):
        with_(External("sub_relu", library / "add_relu.so"))


def test_what_an_op_updates_is_not_written_by_the_function(library):
    text = """
    #id = affine_map<(d0) -> (d0)>
    func.func @main(%x: tensor<6xf32>, %y: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
      %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
          ins(%x : tensor<6xf32>) outs(%y : tensor<6xf32>) {
      ^bb0(%a: f32, %b: f32):
        %s = arith.addf %a, %b : f32
        linalg.yield %s : f32
      } -> tensor<6xf32>
      return %0, %y : tensor<6xf32>, tensor<6xf32>
    }"""
    taken = []

    def add(first, second):
        taken.append((first.copy(), second.copy()))
        return first + second

    exe = pipeline.compile(text, fusions=[fuse_into(["add"], name="mine", becomes=Callback(add))])
    total, same = exe(X, Y)
    torch.testing.assert_close(total, X + Y)
    torch.testing.assert_close(same, Y)
    np.testing.assert_array_equal(taken[0][0], Y.numpy())


# Python functions


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int8", "bool"])
@pytest.mark.parametrize("shape", [(), (1,), (0,), (5, 3)], ids=str)
def test_a_python_function(dtype, shape):
    seen = []

    def both(x, y):
        seen.append((x.shape, str(x.dtype), x.flags.writeable))
        return np.logical_and(x, y) if dtype == "bool" else x + y

    kind = getattr(torch, dtype)
    x, y = (torch.randn(shape) * 3).to(kind), (torch.randn(shape) * 3).to(kind)
    function = torch.logical_and if dtype == "bool" else torch.add
    words = ["and", "andi", "logical_and"] if dtype == "bool" else ["add"]
    exe = run(function, x, y, fusions=[fuse_into(words, name="mine", becomes=Callback(both))])
    exe(x, y)
    assert set(seen) == ({(shape, dtype, False)} if x.numel() else set())  # there is nothing to call it for


def test_a_python_function_with_several_results_in_prepare_and_in_branches():
    calls = []

    def two(x):
        calls.append("two")
        e = np.exp(x)
        return e, np.sin(e)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(6), requires_grad=False)

        def forward(self, c, x):
            def yes(x):
                e = x.exp()
                return e.sin() + e * 2

            w = self.weight.exp()
            return torch.cond(c, yes, lambda x: x + 1, (x,)) + w * w.sin()

    mine = fuse_into(["exp", "sin"], name="mine", becomes=Callback(two))
    exe = compiled(Net(), torch.tensor(True), X, fusions=[mine])
    assert calls == ["two", "two"]
    torch.testing.assert_close(exe(torch.tensor(False), X), Net.forward(exe_model(exe), torch.tensor(False), X))


def exe_model(exe):
    """A stand-in for the model, with the executable's own weights."""
    model = type("Weights", (), {})()
    model.weight = exe._weights["weight"]
    return model


def test_what_a_python_function_raises_is_raised_by_the_call():
    class Broken(Exception):
        pass

    def fails(x):
        if x[0] > 0:
            raise Broken("no")
        return -x

    exe = pipeline.compile(
        Function(lambda x: x.neg().exp()), (X,), fusions=[fuse_into(["neg"], name="mine", becomes=Callback(fails))]
    )
    with pytest.raises(PipelineError, match="a Python function of the model failed: Broken: no") as caught:
        exe(torch.ones(6))
    assert isinstance(caught.value.__cause__, Broken)
    torch.testing.assert_close(exe(-torch.ones(6)), torch.ones(6).exp())


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda x: x[:2], r"it returned float32\[2\], expected float32\[6\]"),
        (lambda x: x.astype(np.float64), r"it returned float64\[6\], expected float32\[6\]"),
        (lambda x: (x, x), "it returned 2 results, expected 1"),
        (lambda x: None, "expected float32"),
        (lambda x: x.fill(1), "read-only"),
    ],
)
def test_a_python_function_that_returns_something_else(returned, message):
    fusion = fuse_into(["exp"], name="mine", becomes=Callback(returned))
    exe = pipeline.compile(Function(lambda x: x.exp()), (X,), fusions=[fusion])
    with pytest.raises(PipelineError, match=message):
        exe(X)


def test_python_functions_cannot_be_saved(tmp_path):
    fusion = fuse_into(["exp"], name="mine", becomes=Callback(np.exp))
    exe = pipeline.compile(Function(lambda x: x.exp()), (X,), fusions=[fusion])
    with pytest.raises(
        ArtifactError, match="calls Python functions .* cannot be saved; make them functions of a shared"
    ):
        exe.save(tmp_path / "model.pipeline")
    assert not (tmp_path / "model.pipeline").exists()


def test_python_functions_in_threads_and_in_several_executables():
    exes = [
        pipeline.compile(
            Function(lambda x: x.exp()),
            (X,),
            fusions=[fuse_into(["exp"], name="mine", becomes=Callback(lambda x, k=k: x * np.float32(k)))],
        )
        for k in range(4)
    ]
    results = {}

    def work(k):
        for _ in range(20):
            results[k] = exes[k](X)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(4):
        torch.testing.assert_close(results[k], X * k)


def test_passes_after_it_leave_a_called_group_alone():
    shapes = []

    def exp(x):
        shapes.append(x.shape)
        return np.exp(x)

    mine = fuse_into(["exp"], name="mine", becomes=Callback(exp))
    exe = run(lambda x: (x.exp(), x.sin(), x.reshape(2, 3)[:, 1:].exp()), X, fusions=[mine])
    assert labels(exe).count("mine") == 2
    assert sorted(shapes) == [(2, 2), (6,)]


# Emitted MLIR


def test_emitted_mlir_in_a_branch():
    seen = []

    def emit(operands, types, ops):
        seen.extend(op.words for op in ops)
        (x,), (kind,) = operands, types
        empty = tensor.EmptyOp(kind.shape, kind.element_type).result
        tanh = linalg.tanh(x, outs=[empty])
        return [linalg.mul(tanh, tanh, outs=[tensor.EmptyOp(kind.shape, kind.element_type).result])]

    mine = fuse_into(["exp", "sin"], name="mine", becomes=Emitter(emit))

    def branches(c, x):
        return torch.cond(c, lambda x: x.exp().sin() + 1, lambda x: x * 2, (x,))

    for c in (True, False):
        exe = pipeline.compile(Function(branches), (torch.tensor(c), X), fusions=[mine])
        torch.testing.assert_close(exe(torch.tensor(True), X), X.tanh() ** 2 + 1)
        torch.testing.assert_close(exe(torch.tensor(False), X), X * 2)
    assert seen[:2] == [("exp",), ("sin",)]
    assert "mine_0" in {kernel.name for kernel in exe.kernels}


@pytest.mark.parametrize(
    ("emit", "message"),
    [
        (
            lambda operands, types, ops: [],
            r"the emitter of mine returned values of types \(\), expected \(tensor<6xf32>\)",
        ),
        (lambda operands, types, ops: 1 / 0, "the emitter of mine failed: ZeroDivisionError: division by zero"),
        (
            lambda operands, types, ops: [ops[-1].op.results[0]],
            "the emitter of mine uses linalg.generic, an op of the body",
        ),
    ],
)
def test_emitters_that_fail(emit, message):
    with pytest.raises(PipelineError, match=message):
        pipeline.compile(
            Function(lambda x: x.exp()), (X,), fusions=[fuse_into(["exp"], name="mine", becomes=Emitter(emit))]
        )


# Intrinsics


class Layer(nn.Module):
    def __init__(self, activation):
        super().__init__()
        torch.manual_seed(0)
        self.linear, self.activation = nn.Linear(4, 5), activation

    def forward(self, x):
        return self.activation(self.linear(x)).exp()


STEPS = ("matmul", "add", ("relu", "neg"))


@pytest.mark.parametrize("activation", [torch.relu, torch.neg], ids=["relu", "neg"])
def test_an_intrinsic_of_a_library(library, activation):
    gemm = Intrinsic(STEPS, External("gemm", library / "gemm.so"))
    layer = Layer(activation).requires_grad_(False)
    exe = compiled(layer, torch.randn(3, 4), fusions=[fuse_into(None, name="npu_gemm", becomes=gemm)])
    assert "npu_gemm" in labels(exe)


@pytest.mark.parametrize("activation", [torch.relu, torch.neg], ids=["relu", "neg"])
def test_an_intrinsic_gets_operands_and_attributes_in_branches_too(activation):
    calls = []

    def gemm(a, b, bias, *, steps):
        calls.append((a.shape, b.shape, bias.shape, steps))
        y = a @ b + bias
        return np.maximum(y, 0) if steps[2] == "relu" else -y

    class Branches(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = Layer(activation)

        def forward(self, c, x):
            return torch.cond(c, lambda x: self.layer(x), lambda x: self.layer(x * 2), (x,))

    fusion = fuse_into(None, name="npu_gemm", becomes=Intrinsic(STEPS, Callback(gemm)))
    exe = compiled(Branches().requires_grad_(False), torch.tensor(True), torch.randn(3, 4), fusions=[fusion])
    assert labels(exe).count("npu_gemm") == 2
    assert calls == [((3, 4), (4, 5), (5,), ("matmul", "add", activation.__name__))]


def test_chains_that_are_no_intrinsic():
    fusion = fuse_into(None, name="npu_gemm", becomes=Intrinsic(STEPS, Callback(lambda *a, steps: None)))

    def keys(exe):
        return {remark.key for remark in exe.remarks if remark.pass_name == "fuse-into"}

    x = torch.randn(3, 4)
    other = compiled(Layer(torch.tanh).requires_grad_(False), x, fusions=[fusion])
    assert "npu_gemm" not in labels(other) and keys(other) == {"rule"}
    weight, bias = torch.randn(4, 5), torch.randn(5)

    def twice(x):
        y = x @ weight + bias
        return y.relu(), y.exp()

    shared = run(twice, x, fusions=[fusion])
    assert "npu_gemm" not in labels(shared) and keys(shared) == {"multi-use"}
    stopped = run(lambda x: pipeline.stop_fusion(x @ weight + bias).relu(), x, fusions=[fusion])
    assert "npu_gemm" not in labels(stopped)


def test_a_product_that_adds_to_something_is_no_intrinsic():
    text = """
    func.func @main(%a: tensor<2x2xf32>, %c: tensor<2x2xf32>) -> tensor<2x2xf32> {
      %0 = linalg.matmul ins(%a, %a : tensor<2x2xf32>, tensor<2x2xf32>) outs(%c : tensor<2x2xf32>) -> tensor<2x2xf32>
      return %0 : tensor<2x2xf32>
    }"""
    fusion = fuse_into(None, name="mm", becomes=Intrinsic(("matmul",), Callback(lambda a, b, steps: a @ b)))
    exe = pipeline.compile(text, fusions=[fusion])
    a, c = torch.randn(2, 2), torch.randn(2, 2)
    torch.testing.assert_close(exe(a, c), a @ a + c)


# The interface


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["exp"], {"name": "a-b"}), "name='a-b': expected a word"),
        ((3, {"name": "x"}), "predicate: expected names of ops or a function, got 3"),
        ((None, {"name": "x"}), "predicate: expected names of ops or a function, got None"),
        ((["exp"], {"name": "x", "becomes": print}), "becomes: expected External, Callback, Emitter or Intrinsic"),
    ],
)
def test_refused(arguments, message):
    predicate, rest = arguments
    with pytest.raises(OptionError, match=message):
        fuse_into(predicate, **rest)


def test_fusions_are_what_fuse_into_gives():
    with pytest.raises(OptionError, match="fusions: expected a list of what pipeline.fuse_into gives, got"):
        pipeline.compile(Function(torch.exp), (X,), fusions=["exp"])


def test_a_predicate_that_fails_is_an_error_of_compilation():
    with pytest.raises(PipelineError, match="pass 'fuse-into' failed .* ZeroDivisionError"):
        pipeline.compile(Function(torch.exp), (X,), fusions=[fuse_into(lambda op: 1 / 0, name="mine")])


def test_torch_compile_takes_them():
    torch._dynamo.reset()
    calls = []
    fusion = fuse_into(["exp"], name="mine", becomes=Callback(lambda x: calls.append(1) or np.exp(x)))
    with torch.no_grad():
        function = torch.compile(lambda x: x.exp() + 1, backend="pipeline", options={"fusions": [fusion]})
        torch.testing.assert_close(function(X), X.exp() + 1)
    assert calls
