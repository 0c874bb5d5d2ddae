"""ONNX models that tests make."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(0)


def weight(name, *shape):
    return numpy_helper.from_array((RNG.standard_normal(shape) * 0.2).astype(np.float32), name)


def info(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, inputs, outputs, initializers=(), version=20):
    graph = helper.make_graph(nodes, "graph", inputs, outputs, list(initializers))
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])
    made.ir_version = 9
    return made


def _conv_norm(x, channels, number, initializers):
    inner, outer = channels
    names = [f"{kind}{number}" for kind in ("scale", "bias", "mean", "variance")]
    initializers += [weight(f"w{number}", outer, inner, 3, 3)]
    initializers += [numpy_helper.from_array(RNG.uniform(0.5, 1.5, outer).astype(np.float32), name) for name in names]
    return [
        helper.make_node("Conv", [x, f"w{number}"], [f"conv{number}"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", [f"conv{number}", *names], [f"norm{number}"]),
    ]


def residual_network():
    """Images of any number → 5 numbers each: a stem, a block with a residual, a pool and a linear layer."""
    initializers = [weight("fc", 5, 8), weight("fc_bias", 5)]
    nodes = [
        *_conv_norm("x", (3, 8), 0, initializers),
        helper.make_node("Relu", ["norm0"], ["stem"]),
        helper.make_node("MaxPool", ["stem"], ["pooled"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
        *_conv_norm("pooled", (8, 8), 1, initializers),
        helper.make_node("Add", ["norm1", "pooled"], ["sum"]),
        helper.make_node("Relu", ["sum"], ["block"]),
        helper.make_node("GlobalAveragePool", ["block"], ["mean"]),
        helper.make_node("Flatten", ["mean"], ["flat"]),
        helper.make_node("Gemm", ["flat", "fc", "fc_bias"], ["y"], transB=1),
    ]
    return model(nodes, [info("x", ["n", 3, 10, 10])], [info("y", ["n", 5])], initializers)


def reshape_by_shape():
    """[n, t, 6] → [n * t, 6] → [n, t, 6] + 1, by sizes that the graph computes."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Constant", [], ["last"], value=numpy_helper.from_array(np.array([2], np.int64))),
        helper.make_node("Gather", ["shape", "last"], ["features"]),
        helper.make_node("Constant", [], ["rest"], value=numpy_helper.from_array(np.array([-1], np.int64))),
        helper.make_node("Concat", ["rest", "features"], ["flat"], axis=0),
        helper.make_node("Reshape", ["x", "flat"], ["rows"]),
        helper.make_node("Tanh", ["rows"], ["changed"]),
        helper.make_node("Reshape", ["changed", "shape"], ["y"]),
    ]
    return model(nodes, [info("x", ["n", "t", 6])], [info("y", ["n", "t", 6])])


def branch_on_a_sum():
    """x + w if the sum of x is greater than 0, else x * w."""

    def graph(name, op):
        nodes = [helper.make_node(op, ["x", "w"], [f"{name}_y"])]
        return helper.make_graph(nodes, name, [], [info(f"{name}_y", [4])])

    nodes = [
        helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
        helper.make_node("Greater", ["sum", "zero"], ["positive"]),
        helper.make_node("If", ["positive"], ["y"], then_branch=graph("then", "Add"), else_branch=graph("else", "Mul")),
    ]
    zero = numpy_helper.from_array(np.array(0, np.float32), "zero")
    return model(nodes, [info("x", [4])], [info("y", [4])], [weight("w", 4), zero])


def doubling_loop():
    """x doubled until its sum is 100 or more."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["value", "value"], ["doubled"]),
            helper.make_node("ReduceSum", ["doubled"], ["total"], keepdims=0),
            helper.make_node("Less", ["total", "hundred"], ["again"]),
        ],
        "body",
        [info("i", [], TensorProto.INT64), info("go", [], TensorProto.BOOL), info("value", [3])],
        [info("again", [], TensorProto.BOOL), info("doubled", [3])],
    )
    constants = [
        numpy_helper.from_array(np.array(100, np.float32), "hundred"),
        numpy_helper.from_array(np.array(True), "true"),
        numpy_helper.from_array(np.array(50, np.int64), "most"),
    ]
    nodes = [helper.make_node("Loop", ["most", "true", "x"], ["y"], body=body)]
    return model(nodes, [info("x", [3])], [info("y", [3])], constants)
