import json
import subprocess
import sys

import numpy as np
import onnx
import onnx_models
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper
from onnx.backend.test.loader import load_model_tests

import pipeline
from pipeline.errors import CaptureError, PipelineError
from pipeline.remarks import collect
from pipeline.tools import compile as compile_driver
from pipeline.tools import run as run_driver

RNG = np.random.default_rng(1)


def arrays(*shapes):
    return [RNG.standard_normal(shape).astype(np.float32) for shape in shapes]


def by_runtime(model, *inputs):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [given.name for given in session.get_inputs()]
    return session.run(None, dict(zip(names, inputs, strict=True)))


def agrees(executable, model, *inputs):
    found = executable(*inputs)
    found = found if isinstance(found, tuple) else (found,)
    for got, want in zip(found, by_runtime(model, *inputs), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_a_residual_network_from_a_file(tmp_path):
    model = onnx_models.residual_network()
    path = tmp_path / "net.onnx"
    onnx.save(model, path)
    executable = pipeline.compile(path, fallback="error")
    for batch in (1, 2, 5):
        agrees(executable, model, *arrays((batch, 3, 10, 10)))
    assert executable(x=arrays((3, 3, 10, 10))[0]).shape == (3, 5)
    names = {weight.name for weight in executable.signature.weights}
    assert {"w0", "scale0", "fc", "fc_bias"} <= names
    assert sum(r.pass_name == "fold-batch-norm" and r.kind == "passed" for r in executable.remarks) == 2
    executable.save(tmp_path / "net.pipeline")
    agrees(pipeline.load(tmp_path / "net.pipeline"), model, *arrays((2, 3, 10, 10)))


def test_external_data_and_bytes_and_protos(tmp_path):
    model = onnx_models.residual_network()
    path = tmp_path / "net.onnx"
    copied = onnx.ModelProto()
    copied.CopyFrom(model)
    onnx.save(copied, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    (x,) = arrays((2, 3, 10, 10))
    for given in (path, model.SerializeToString(), model):
        agrees(pipeline.compile(given, (x,)), model, x)
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(CaptureError, match="external data"):
        pipeline.compile(path)


def test_the_drivers_take_it(tmp_path, capsys):
    model = onnx_models.residual_network()
    onnx.save(model, tmp_path / "net.onnx")
    (x,) = arrays((2, 3, 10, 10))
    np.save(tmp_path / "x.npy", x)
    assert compile_driver.main([str(tmp_path / "net.onnx"), "-o", str(tmp_path / "net.pipeline")]) == 0
    for name in ("net.pipeline", "net.onnx"):
        given = [str(tmp_path / name), "--input", str(tmp_path / "x.npy"), "--output", str(tmp_path / "y.npy")]
        assert run_driver.main(given) == 0, capsys.readouterr().err
        np.testing.assert_allclose(np.load(tmp_path / "y.npy"), by_runtime(model, x)[0], rtol=1e-5, atol=1e-5)


def test_sizes_that_the_graph_computes():
    model = onnx_models.reshape_by_shape()
    executable = pipeline.compile(model, fallback="error")
    for shape in ((1, 1, 6), (2, 3, 6), (5, 1, 6)):
        agrees(executable, model, *arrays(shape))


def test_an_open_size_that_the_graph_fixes_leaves_a_remark():
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    x, y = onnx_models.info("x", ["n", 6]), onnx_models.info("y", ["n", 6])
    with collect() as remarks:
        pipeline.compile(onnx_models.model(nodes, [x], [y], [onnx_models.weight("w", 7, 6)]))
    assert [r.reason for r in remarks if r.pass_name == "capture"] == ["dimension 0 of x is 7 at each call"]


def test_control_flow_on_data():
    branch, loop = onnx_models.branch_on_a_sum(), onnx_models.doubling_loop()
    compiled = pipeline.compile(branch, fallback="error")
    for x in (np.full(4, 2, np.float32), np.full(4, -2, np.float32)):
        agrees(compiled, branch, x)
    compiled = pipeline.compile(loop, fallback="error")
    for x in (np.ones(3, np.float32), np.full(3, 60, np.float32)):
        agrees(compiled, loop, x)


def test_weights_of_four_bits():
    k, n, block = 32, 6, 16
    packed = RNG.integers(0, 256, (n, k // block, block // 2), dtype=np.uint8)
    scales = RNG.uniform(0.01, 0.1, (n, k // block)).astype(np.float32)
    node = helper.make_node(
        "MatMulNBits", ["x", "q", "s"], ["y"], domain="com.microsoft", K=k, N=n, bits=4, block_size=block
    )
    constants = [onnx.numpy_helper.from_array(packed, "q"), onnx.numpy_helper.from_array(scales.reshape(-1), "s")]
    made = onnx_models.model([node], [onnx_models.info("x", [3, k])], [onnx_models.info("y", [3, n])], constants)
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    executable = pipeline.compile(made, fallback="error")
    (x,) = arrays((3, k))
    whole = np.stack([packed & 15, packed >> 4], -1).reshape(n, k).astype(np.float32) - 8
    np.testing.assert_allclose(executable(x), x @ (whole * scales.repeat(block, 1)).T, rtol=1e-4, atol=1e-4)


def one_op(op, shape, kind=TensorProto.FLOAT, domain=""):
    node = helper.make_node(op, ["x"], ["y"], domain=domain)
    made = onnx_models.model([node], [onnx_models.info("x", shape, kind)], [onnx_models.info("y", shape, kind)])
    if domain:
        made.opset_import.append(helper.make_opsetid(domain, 1))
    return made


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda: one_op("NoSuchOp", [3], domain="my.own"), "NoSuchOp of my.own"),
        (lambda: one_op("Identity", [3], TensorProto.STRING), "elements of type string"),
        (lambda: b"nothing", "no ONNX model"),
        (lambda: onnx.ModelProto(), "not an ONNX model"),
    ],
)
def test_what_cannot_be_taken_is_one_sentence(model, message):
    with pytest.raises(PipelineError, match=message):
        pipeline.compile(model())


def test_without_the_package_it_says_what_to_install(tmp_path):
    (tmp_path / "net.onnx").write_bytes(b"x")
    code = "import sys; sys.modules['onnx'] = None; import pipeline; pipeline.compile(sys.argv[1])"
    ended = subprocess.run([sys.executable, "-c", code, tmp_path / "net.onnx"], capture_output=True, text=True)
    assert "pip install onnx" in ended.stderr.splitlines()[-1]


#: Of onnx's own tests; scripts/onnx_backend.py runs all of them.
SAMPLE = [
    "test_add_bcast",
    "test_and_bcast3v1d",
    "test_argmax_keepdims_example_select_last_index",
    "test_averagepool_2d_ceil",
    "test_basic_conv_with_padding",
    "test_batchnorm_epsilon",
    "test_bitshift_left_uint8",
    "test_clip_default_inbounds",
    "test_convtranspose_output_shape",
    "test_depthtospace_crd_mode_example",
    "test_dequantizelinear_axis",
    "test_einsum_batch_matmul",
    "test_gather_negative_indices",
    "test_gathernd_example_int32_batch_dim1",
    "test_gemm_all_attributes",
    "test_gru_defaults",
    "test_hardmax_axis_1",
    "test_layer_normalization_2d_axis1",
    "test_lstm_with_peepholes",
    "test_matmulinteger",
    "test_maxpool_with_argmax_2d_precomputed_strides",
    "test_nonmaxsuppression_two_classes",
    "test_onehot_with_negative_axis",
    "test_qlinearconv",
    "test_qlinearmatmul_2D_uint8_float32",
    "test_quantizelinear_axis",
    "test_reduce_log_sum_exp_keepdims_example",
    "test_resize_downsample_scales_cubic",
    "test_scatter_elements_with_axis",
    "test_softmax_axis_0",
    "test_split_variable_parts_2d_opset18",
    "test_top_k",
    "test_tril_neg",
    "test_where_example",
]


def test_a_sample_of_onnxs_own_tests():
    sys.path.insert(0, "scripts")
    try:
        from onnx_backend import by_pipeline
    finally:
        sys.path.remove("scripts")
    found = {case.name: case for case in load_model_tests(kind="node") if case.name in SAMPLE}
    assert sorted(found) == sorted(SAMPLE)
    wrong = {name: reason for name, case in found.items() if (reason := by_pipeline(case, eager=False)) is not None}
    assert not wrong, json.dumps(wrong, indent=1)


def test_a_module_of_torch_may_have_any_attribute():
    """Nothing is taken for an ONNX model by its names alone."""

    class Counted(torch.nn.Module):
        completed, examples, input_names = 3, (1,), ["x"]

        def forward(self, x):
            return x + self.completed

    assert pipeline.compile(Counted(), (torch.zeros(2),))(torch.zeros(2)).tolist() == [3, 3]


def of_microsoft(op, inputs, outputs=("y",), constants=(), **attributes):
    """A model of one op of ONNX Runtime's own, of inputs by name and shape, and of constants."""
    names = [*inputs, *(constant.name for constant in constants)]
    node = helper.make_node(op, names, list(outputs), domain="com.microsoft", **attributes)
    given = [onnx_models.info(name, shape, kind) for name, (shape, kind) in inputs.items()]
    kind = next(iter(inputs.values()))[1]
    made = onnx_models.model([node], given, [onnx_models.info(name, None, kind) for name in outputs], list(constants))
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return made


F32 = TensorProto.FLOAT


@pytest.mark.parametrize(
    ("op", "shapes", "attributes"),
    [
        ("FusedMatMul", ((3, 4), (5, 4)), {"transB": 1, "alpha": 0.5}),
        ("FusedMatMul", ((2, 4, 3), (2, 4, 5)), {"transA": 1}),
        ("Gelu", ((3, 7),), {}),
        ("FastGelu", ((3, 7),), {}),
        ("BiasGelu", ((3, 7), (7,)), {}),
        ("QuickGelu", ((3, 7),), {"alpha": 1.5}),
        ("SkipLayerNormalization", ((2, 3, 8), (2, 3, 8), (8,), (8,)), {"epsilon": 1e-5}),
    ],
    ids=str,
)
def test_ops_of_onnx_runtime(op, shapes, attributes):
    inputs = {f"x{number}": (shape, F32) for number, shape in enumerate(shapes)}
    made = of_microsoft(op, inputs, **attributes)
    agrees(pipeline.compile(made, fallback="error"), made, *arrays(*shapes))


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8], ids=str)
def test_sums_and_products_of_bytes(op, dtype):
    """Rounded and saturated as ONNX Runtime does."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    values = {"a_s": 0.05, "a_z": 3, "b_s": 0.03, "b_z": 7, "y_s": 0.04, "y_z": 5}
    parts = {
        name: onnx.numpy_helper.from_array(np.array(value, np.float32 if name.endswith("s") else dtype), name)
        for name, value in values.items()
    }
    names = ["a", "a_s", "a_z", "b", "b_s", "b_z", "y_s", "y_z"]
    node = helper.make_node(op, names, ["y"], domain="com.microsoft")
    given = [onnx_models.info(name, [4, 9], kind) for name in "ab"]
    made = onnx_models.model([node], given, [onnx_models.info("y", [4, 9], kind)], list(parts.values()))
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    info = np.iinfo(dtype)
    a, b = (RNG.integers(info.min, info.max, (4, 9), dtype=dtype, endpoint=True) for _ in range(2))
    found = pipeline.compile(made, fallback="error")(a, b)
    assert found.dtype == dtype and {info.min, info.max} & set(found.reshape(-1).tolist())
    np.testing.assert_array_equal(found, by_runtime(made, a, b)[0])


def test_a_transform_of_frames_without_a_length_is_refused():
    node = helper.make_node("STFT", ["x", "step"], ["y"])
    step = onnx.numpy_helper.from_array(np.array(2, np.int64), "step")
    outputs = [onnx_models.info("y", [1, 3, 3, 2])]
    made = onnx_models.model([node], [onnx_models.info("x", [1, 8, 1])], outputs, [step])
    with pytest.raises(PipelineError, match="neither a window nor the length of its frames"):
        pipeline.compile(made)
