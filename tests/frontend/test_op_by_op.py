"""Programs taken apart op by op are what torch makes of them as a whole; those that are not plain are left to torch."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from function_model import Function
from torch import nn
from torch.export import Dim, ExportedProgram

import pipeline
from pipeline.frontend.capture.capture import export
from pipeline.frontend.decompositions import decomposition_table
from pipeline.frontend.functionalize.fragments import FragmentTracer
from pipeline.frontend.functionalize.op_by_op import decomposed

aten = torch.ops.aten

Program = Callable[..., Any]


def x() -> torch.Tensor:
    return torch.randn(3, 4)


def add_twice(x: torch.Tensor) -> list[torch.Tensor]:
    total = x * 2
    first = total.add_(1)
    second = total.mul_(first)
    return [total, first, second, x]


def write_what_is_returned(x: torch.Tensor) -> list[torch.Tensor]:
    total = x.exp()
    before = total + 0
    total.add_(x).relu_()
    return [before, total, total.detach_() * 2]


def read_before_the_write(x: torch.Tensor) -> torch.Tensor:
    total = x.tanh()
    half = total / 2
    total.add_(half)
    return total * half


def write_regions(x: torch.Tensor) -> torch.Tensor:
    """As Swin's attention mask is made."""
    mask = x.new_zeros(1, 4, 4, 1)
    for number, (rows, columns) in enumerate(
        itertools.product((slice(0, -2), slice(-2, -1), slice(-1, None)), repeat=2)
    ):
        mask[:, rows, columns, :] = number
    return mask.view(-1, 4)[:3] - x


def write_views_in_turns(x: torch.Tensor) -> list[torch.Tensor]:
    total = torch.zeros(3, 4)
    total[1:2] = x[0]
    turned = total.t()
    before = turned + 1
    turned[0] += x[:, 0]
    total[:, 2].mul_(before[2])
    row = total[0]
    total[0, 1] = 9.0
    return [total, before, row * 1, turned.sum()]


def write_into_all_views(x: torch.Tensor) -> list[torch.Tensor]:
    total = x.relu()
    flat = total.view(-1)
    flat[0] = 5
    summed = total.sum()
    total.zero_()
    return [summed, flat, total]


def write_parts_of_an_argument(x: torch.Tensor) -> list[torch.Tensor]:
    before = x.sum()
    row = x[0]
    x[1:, 1] = row[:2] * before
    after = x + 1
    x.t()[2].mul_(after[0, 0])
    return [before, row, after, x.view(-1)[3:]]


def norm(x: torch.Tensor) -> torch.Tensor:
    return nn.functional.batch_norm(x, torch.zeros(4), torch.ones(4)).clamp_(0, 6)


#: Each of float tensors of 3 x 4.
PLAIN: dict[str, Program] = {
    "nothing": lambda x: x,
    "same argument twice": lambda x: (x == x, torch.logaddexp(x, x), torch.logaddexp(x, x + 1)),
    "other argument twice": lambda x: (torch.logaddexp(x, x * 2), torch.logaddexp(x * 2, x * 2)),
    "numbers of several types": lambda x: (x + 1, x + 1.0, x + True, x.clamp(0), x.clamp(0.0), x.pow(2), x.pow(2.0)),
    "several results": lambda x: (*x.split(1), *x.max(1), *torch.var_mean(x, 0), x.sort(1)),
    "views": lambda x: (x.t().reshape(2, 6), x.view(12)[1:7].view(2, 3), x.unbind(1)[2], x.expand(2, 3, 4)),
    "composite ops": lambda x: nn.functional.linear(x, torch.ones(2, 4)).softmax(1).flatten(),
    "types": lambda x: (x.to(torch.float64) + 1, x.int() + x, x.bool(), x.half() @ x.half().t()),
    "attention": lambda x: nn.functional.scaled_dot_product_attention(*[x.view(1, 1, 3, 4)] * 3),
    "norm": norm,
    "add twice": add_twice,
    "write what is returned": write_what_is_returned,
    "read before the write": read_before_the_write,
    "write regions": write_regions,
    "write views in turns": write_views_in_turns,
    "write into all views": write_into_all_views,
    "view written to": lambda x: ((y := x * 2)[0].add_(1), y)[1],
    "base of a view written to": lambda x: (z := (y := x * 2)[0], y.add_(1), z.exp())[2],
    "detached written to": lambda x: (z := (y := x * 2).detach(), y.add_(1), z.exp())[2],
    "unannounced view written to": lambda x: (z := torch.einsum("ij->ji", y := x * 2), y.add_(1), z.exp())[2],
    "written to what may be a view": lambda x: (torch.einsum("ij->ji", y := x * 2).add_(1), y.exp())[1],
    "splits written to": lambda x: (parts := (x * 2).split(1), parts[0].copy_(parts[1]), parts[0] + parts[1])[2],
    "written under another shape": lambda x: (x + 1).unsqueeze(0).squeeze_().add_(1),
    "resize": lambda x: nn.functional.interpolate(x.view(1, 1, 3, 4), scale_factor=2, mode="bilinear"),
    "pool": lambda x: nn.functional.adaptive_avg_pool1d(x, 2),
    "write by index": lambda x: x.clone().index_put_((torch.tensor([0]),), torch.ones(4)),
    "write oneself": lambda x: (y := x + 1).mul_(y).sub_(y),
    "detached": lambda x: (x.detach(), (x * 2).detach(), x.detach().exp()),
    "constants": lambda x: x * torch.tensor([1.0, 2, 3, 4]) + torch.tensor(3),
    "new tensors": lambda x: x + torch.arange(4) + torch.full_like(x, 2) + x.new_zeros(4),
    "sizes": lambda x: (x.shape[0], x + x.shape[1], x.numel(), x.new_zeros(x.shape[0], 2)),
    "argument written to": lambda x: x.add_(1),
    "argument written to twice": lambda x: (y := x.add_(1), z := x * y, x.mul_(z), x.exp())[1:],
    "argument becomes another": lambda x: (y := x * 2, x.copy_(y), y),
    "parts of an argument written to": write_parts_of_an_argument,
    "reshaped argument written to": lambda x: (x.reshape(12).add_(1), x.flatten()[2])[1],
    "split written to": lambda x: x.split(1)[0].add_(1),
    "argument read through a composite op": lambda x: (y := nn.functional.linear(x, torch.ones(4, 4)), x.add_(y))[0],
    "type changes": lambda x: x.int().add_(x.long()),
    "type changes in a part": lambda x: (y := torch.zeros_like(x).int(), y[1].copy_(x[0].to(torch.int64)), y.half())[2],
    "indices": lambda x: (x[torch.tensor([0, 2])], x.index_select(1, torch.tensor([3, 0]))),
}

NOT_PLAIN: dict[str, Program] = {
    "sparse": lambda x: torch.sparse.mm(x.t().to_sparse(), x),
    "branch": lambda x: torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,)),
    "number of a tensor": lambda x: x * x.sum().item(),
}


def exported(function: Program, shapes: Any = None) -> ExportedProgram:
    return export(Function(function), (x(),), dynamic_shapes=shapes)


def targets(program: ExportedProgram) -> list[Any]:
    """The ops of a program, without those that are the identity or only ask for a size or a type."""
    aten = torch.ops.aten
    left_out = (aten.alias.default, aten.sym_size.int, aten._assert_tensor_metadata.default)
    calls = [node.target for node in program.graph.nodes if node.op == "call_function"]
    return [target for target in calls if target not in left_out]


@pytest.mark.parametrize("name", PLAIN)
def test_plain_programs(name: str) -> None:
    program, table = exported(PLAIN[name]), decomposition_table()
    with torch.no_grad():
        ours, torchs = decomposed(program, table), program.run_decompositions(dict(table))
    assert ours is not None
    assert targets(ours) == targets(torchs) or name in IN_ANOTHER_ORDER
    data = x()
    written = data.clone()
    expected = PLAIN[name](written)
    for program in (ours, torchs):
        own = data.clone()
        torch.testing.assert_close(program.module()(own), expected)
        assert own.equal(written)


@pytest.mark.parametrize("name", NOT_PLAIN)
def test_others_are_left_to_torch(name: str) -> None:
    assert decomposed(exported(NOT_PLAIN[name]), decomposition_table()) is None


#: What has sizes of its own, which are not those of an argument whose sizes are symbolic.
OF_ONE_SIZE = (
    "composite ops",
    "norm",
    "attention",
    "write regions",
    "write views in turns",
    "views",
    "several results",
)
OF_ONE_SIZE += ("resize", "reshaped argument written to")

#: Views are taken of what was written in another order than torch takes them in.
IN_ANOTHER_ORDER = ("write views in turns",)


@pytest.mark.parametrize("name", [name for name in PLAIN if name not in OF_ONE_SIZE])
def test_symbolic_sizes(name: str) -> None:
    program, table = exported(PLAIN[name], (({0: Dim.AUTO, 1: Dim.AUTO},),)), decomposition_table()
    with torch.no_grad():
        ours, torchs = decomposed(program, table), program.run_decompositions(dict(table))
    assert ours is not None
    assert targets(ours) == targets(torchs)
    assert ours.range_constraints == torchs.range_constraints
    data = torch.randn(3, 4) if len(program.range_constraints) < 2 else torch.randn(5, 4)
    written = data.clone()
    torch.testing.assert_close(ours.module()(data), PLAIN[name](written))
    assert data.equal(written)


class Buffers(nn.Module):
    """Writes to buffers, one of which may be a view of another."""

    def __init__(self, shared: bool = False, parameter: bool = False):
        super().__init__()
        self.register_buffer("table", torch.zeros(6, 4))
        self.register_buffer("row", self.table[5] if shared else torch.zeros(4))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.scale = nn.Parameter(torch.ones(4))
        self.parameter = parameter

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        self.calls += 1
        if self.parameter:
            self.scale.add_(1)
        self.table[: x.shape[0]] = x * self.scale
        self.row.copy_(self.table[: x.shape[0]].sum(0))
        self.table[:, 1].mul_(self.calls)
        return self.table[: x.shape[0]] + self.row, self.row


@pytest.mark.parametrize("sizes", [None, ({0: Dim("rows", max=5)},)], ids=["static", "symbolic"])
def test_buffers_written_to(sizes: Any) -> None:
    """Their last values are the first results, in the order that they stand in."""
    model, table = Buffers(), decomposition_table()
    twin = copy.deepcopy(model)
    program = export(model, (x(),), dynamic_shapes=sizes)
    with torch.no_grad():
        ours, torchs = decomposed(program, table), program.run_decompositions(dict(table))
        assert ours is not None
        assert targets(ours) == targets(torchs)
        kinds = [[(spec.kind, spec.target) for spec in made.graph_signature.output_specs] for made in (ours, torchs)]
        assert kinds[0] == kinds[1]
        made = ours.module()
        for _ in range(2):
            data = x()
            torch.testing.assert_close(made(data), twin(data))
        torch.testing.assert_close(dict(made.named_buffers()), dict(twin.named_buffers()))


def test_one_value_written_to_two_arguments() -> None:
    """They stay two tensors, of which the first is returned."""

    def function(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        first, second = x[0], y[1]
        total = (first + second).expand(3, 4) * 2 + 1
        x.copy_(total)
        y.copy_(total)
        return [x, first * 1, second * 1]

    given = x(), x()
    wanted = [tensor.clone() for tensor in given]
    expected = function(*wanted)
    got = pipeline.compile(Function(function), tuple(tensor.clone() for tensor in given))(*given)
    assert got[0] is given[0]
    torch.testing.assert_close([got, list(given)], [expected, wanted])


@pytest.mark.parametrize("what", ["shared", "parameter"])
def test_weights_written_to_that_are_left_to_torch(what: str) -> None:
    """Memory of two names, and parameters."""
    with torch.no_grad():
        program = export(Buffers(**{what: True}), (x(),))
        assert decomposed(program, decomposition_table()) is None


NORMS: dict[str, nn.Module] = {
    "batch": nn.BatchNorm2d(4),
    "instance": nn.InstanceNorm2d(4, affine=True, track_running_stats=True),
    "instance of a line": nn.InstanceNorm1d(4, track_running_stats=True),
    "batch of a line": nn.BatchNorm1d(4),
}


@pytest.mark.parametrize("name", NORMS)
def test_norms_that_write_their_statistics_are_left_to_torch(name: str) -> None:
    """They are written by ops that do not announce it."""
    norm = NORMS[name].train()
    data = torch.randn(2, 4, 6, 6)[(..., 0) if isinstance(norm, (nn.InstanceNorm1d, nn.BatchNorm1d)) else ...]
    program = export(norm, (data,))
    with torch.no_grad():
        assert decomposed(program, decomposition_table()) is None


def test_recurrent_layers() -> None:
    program, table = export(nn.LSTM(4, 5, num_layers=2).eval(), (torch.randn(3, 2, 4),)), decomposition_table()
    with torch.no_grad():
        ours, torchs = decomposed(program, table), program.run_decompositions(dict(table))
    assert ours is not None
    assert targets(ours) == targets(torchs)


def test_numbers_of_elements_are_left_to_torch() -> None:
    assert decomposed(exported(lambda x: x[x > 0]), decomposition_table()) is None


def test_under_autocast_it_is_left_to_torch() -> None:
    program = exported(lambda x: x @ x.t())
    with torch.autocast("cpu", torch.bfloat16):
        assert decomposed(program, decomposition_table()) is None
    assert decomposed(program, decomposition_table()) is not None


def test_what_torch_refuses_is_left_to_torch() -> None:
    """So that its error names the op and its line."""
    program = exported(lambda x: torch.nn.functional.linear(x, torch.ones(2, 4)))
    node = next(node for node in program.graph.nodes if node.op == "call_function")
    node.args = (node.args[0], node.args[0])
    assert decomposed(program, decomposition_table()) is None


def scaled_rows(x: torch.Tensor) -> torch.Tensor:
    return ((x.unsqueeze(0) + 1) * 0.1).tanh().view(-1)


@pytest.mark.parametrize(
    ("dtype", "traced"),
    [
        (torch.float32, set()),
        (torch.bfloat16, {aten.mul.Tensor}),  # whose rule multiplies in float32
        (
            torch.complex64,
            {aten.unsqueeze.default, aten.add.Tensor, aten.mul.Tensor, aten.tanh.default, aten.view.default},
        ),
    ],
    ids=["float32", "bfloat16", "complex64"],
)
def test_what_no_rule_is_for_is_not_traced(dtype: torch.dtype, traced: set[Any], monkeypatch: Any) -> None:
    """Most rules of the table are for complex numbers, or for 16 bits."""
    ops = []
    trace = FragmentTracer.trace

    def recorded(self: FragmentTracer, op: Any, *args: Any) -> Any:
        ops.append(op)
        return trace(self, op, *args)

    monkeypatch.setattr(FragmentTracer, "trace", recorded)
    model, args = Function(scaled_rows), (torch.randn(3, 4).to(dtype),)
    exported = export(model, args, {}, {"args": ({0: Dim("rows", min=2, max=99)},)}, "export")
    assert decomposed(exported, decomposition_table()) is not None
    assert set(ops) == traced
