"""Views that no schema announces: lists of views, what gives its operand back, dropouts that drop nothing."""

import pytest
import torch
from function_model import Function
from numerics import differences

import pipeline

VIEWS = {
    "unbind": lambda x: x.unbind(-1)[0],
    "split": lambda x: x.split(1)[1],
    "chunk": lambda x: x.chunk(2)[0],
    "tensor_split": lambda x: x.tensor_split(2)[1],
    "hsplit": lambda x: x.hsplit(2)[0],
    "nested": lambda x: x.unbind(0)[1].unbind(0)[0],
    "broadcast_tensors": lambda x: torch.broadcast_tensors(x, x[:1])[0],
    "atleast_1d": torch.atleast_1d,
    "atleast_2d of several": lambda x: torch.atleast_2d([x[0], x[1]])[0],
    "cartesian_prod": lambda x: torch.cartesian_prod(x[0]),
    "conj_physical": torch.conj_physical,
    "dropout": lambda x: torch.dropout(x, 0.5, False),
    "dropout of nothing": lambda x: torch.dropout(x, 0.0, True),
    "dropout2d": lambda x: torch.nn.functional.dropout2d(x[None], 0.5, False),
    "einsum": lambda x: torch.einsum("ij->ji", x),
    "sum_to_size": lambda x: x.sum_to_size(2, 2),
    "type_as": lambda x: x.type_as(x),
}


def plain(view, x, p):
    y = x + 0
    view(y).mul_(2)
    return y


def in_branches(view, x, p):
    def then(y):
        view(y).add_(1)
        return y * 2

    y = x + 0
    return branched(p.sum() > 0, then, lambda y: y * 3, (y,)), y


def of_operands(view, x, p):
    def then(part):
        part.mul_(2)
        return part + 1

    y = x + 0
    return branched(p.sum() > 0, then, lambda part: part * 3, (view(y),)), y


def branched(condition, then, otherwise, operands):
    """torch.cond; in eager mode, where it takes no writes, the branch itself."""
    if torch.compiler.is_exporting():
        return torch.cond(condition, then, otherwise, operands)
    return (then if condition else otherwise)(*operands)


@pytest.mark.parametrize("write", [plain, in_branches, of_operands])
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_what_is_written_to_one_is_read_from_the_other(write, view):
    model = Function(lambda x, p: write(view, x, p))
    x = torch.tensor([[1.0, 2.0], [-3.0, 4.0]])
    executable = pipeline.compile(model, (x, torch.ones(1)), cache=False)
    for p in (torch.ones(1), -torch.ones(1)):
        assert not differences(executable(x.clone(), p), model(x.clone(), p))


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_torch_compile_sees_the_writes(view):
    x = torch.tensor([[1.0, 2.0], [-3.0, 4.0]])
    compiled = torch.compile(lambda x: plain(view, x, None), backend="pipeline")
    with torch.no_grad():
        assert not differences(compiled(x.clone()), plain(view, x.clone(), None))


@pytest.mark.parametrize("view", [name for name in VIEWS if "dropout" in name])
def test_torch_compile_sees_the_writes_with_gradients(view):
    def written(x):
        return plain(VIEWS[view], x, None)

    ours, eager = (torch.tensor([[1.0, 2.0], [-3.0, 4.0]], requires_grad=True) for _ in range(2))
    result, expected = torch.compile(written, backend="pipeline")(ours), written(eager)
    assert not differences(result, expected)
    result.sum().backward()
    expected.sum().backward()
    assert torch.equal(ours.grad, eager.grad)
