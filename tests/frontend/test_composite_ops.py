"""Composite ops are prepared once and not in each run, and what torch does with them is the same."""

import contextlib

import pytest
import torch
import torch._subclasses.fake_impls as fake_impls
import torch.export.exported_program as exported_program
from torch import fx, nn

from pipeline.frontend.capture import composite_ops
from pipeline.frontend.capture.capture import capture, export, functionalize
from pipeline.frontend.capture.composite_ops import remembered
from pipeline.frontend.decompositions import decomposition_table

_OVERRIDE = exported_program._override_composite_implicit_decomp


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    def forward(self, x):
        return torch.einsum("bij,bkj->bik", self.layer(x), x).log_softmax(-1)


def _calls(graph):
    """What a graph computes, by places and not by names, which are numbered by what was traced and then dropped."""
    places = {node: place for place, node in enumerate(graph.nodes)}
    return [(node.target, fx.map_arg((node.args, node.kwargs), places.get)) for node in graph.nodes if node.args]


def _graph(model, args):
    return _calls(capture(model, args).graph_module.graph)


def _state():
    ops = exported_program._collect_all_valid_cia_ops()
    return {op: (dict(op.py_kernels), fake_impls.op_implementations_dict.get(op)) for op in ops}


def _kernels(state):
    return {op: kernels for op, (kernels, _) in state.items()}


@contextlib.contextmanager
def _counted(monkeypatch):
    """The sizes of the tables that torch's own preparation gets in the `with` block."""
    sizes = []

    def counting(table):
        sizes.append(len(table))
        return _OVERRIDE(table)

    with monkeypatch.context() as patch:
        patch.setattr(composite_ops, "_torchs_overrides", counting)
        yield sizes


@pytest.mark.parametrize("model, shape", [(Attention().eval(), (2, 3, 8)), (nn.Linear(3, 1), (0, 3))])
def test_the_graph_is_that_of_torch_alone(model, shape):
    args = (torch.randn(shape),)
    with torch.no_grad():
        alone = _calls(export(model, args).run_decompositions(decomposition_table()).graph)
    assert [_graph(model, args) for _ in range(2)] == [alone, alone]


def test_torch_does_everything_itself_where_it_is_built_otherwise(monkeypatch):
    needed = (*composite_ops._NEEDED, (exported_program, "something_new"))
    monkeypatch.setattr(composite_ops, "_NEEDED", needed)
    with remembered():
        assert exported_program._override_composite_implicit_decomp is _OVERRIDE
    assert len(capture(nn.Linear(3, 4), (torch.randn(2, 3),)).graph_signature.parameters) == 2


def test_nothing_is_prepared_again(monkeypatch):
    """Each size is one for which an op has not been taken apart before."""
    capture(nn.Softmax(-1), (torch.randn(2, 103),))
    capture(nn.Softmax(-1), (torch.randn(2, 104),))  # the first time takes away fake kernels that ops had before
    with _counted(monkeypatch) as sizes:
        capture(nn.Softmax(-1), (torch.randn(2, 105),))
    assert sizes == [0]


def test_inside_an_op_is_as_torch_makes_it_and_outside_as_before():
    composite = _state()
    table = {op: function for op, function in decomposition_table().items() if op in composite}
    assert table
    capture(nn.Linear(3, 4), (torch.randn(2, 3),))
    before = _state()
    with _OVERRIDE(table):
        torchs = _state()
    with remembered():
        for _ in range(2):
            with exported_program._override_composite_implicit_decomp(table):
                ours = _state()
            assert _state() == before
    assert {op: set(kernels) for op, (kernels, _) in ours.items()} == {op: set(one) for op, (one, _) in torchs.items()}
    cia = torch._C.DispatchKey.CompositeImplicitAutograd
    assert all(ours[op][0][cia] is torchs[op][0][cia] is function for op, function in table.items())
    assert exported_program._override_composite_implicit_decomp is _OVERRIDE


def test_an_op_that_changed_is_prepared_again(monkeypatch):
    with torch.library._scoped_library("composite_ops_test", "DEF") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CompositeImplicitAutograd")
        op = torch.ops.composite_ops_test.twice.default
        for function in (lambda x: x + x, lambda x: x - -x):
            with remembered(), exported_program._override_composite_implicit_decomp({op: function}):
                assert op.py_kernels[torch._C.DispatchKey.CompositeImplicitAutograd] is function
            assert not op.py_kernels


def test_an_op_that_is_registered_later_is_found():
    class Twice(nn.Module):
        def forward(self, x):
            return torch.ops.composite_ops_later.twice(x)

    x = torch.randn(3)
    capture(nn.ReLU(), (x,))
    with torch.library._scoped_library("composite_ops_later", "DEF") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CompositeImplicitAutograd")
        kept = functionalize(export(Twice(), (x,)))
        assert "composite_ops_later.twice" in str(kept.graph)


def test_an_error_leaves_no_trace():
    before = _state()
    table = dict.fromkeys(before, lambda *args: args)
    with (
        pytest.raises(RuntimeError, match="inside"),
        remembered(),
        exported_program._override_composite_implicit_decomp(table),
    ):
        raise RuntimeError("inside")
    assert _kernels(_state()) == _kernels(before)
    assert exported_program._override_composite_implicit_decomp is _OVERRIDE
