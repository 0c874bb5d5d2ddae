"""prim::If and prim::Loop of TorchScript → torch.cond and torch.while_loop, where they depend on values of tensors.

What a branch or body returns is found by a trial: a run on examples that leaves no trace.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
import torch.utils._pytree as torch_pytree
from torch._guards import detect_fake_mode
from torch._higher_order_ops.while_loop import while_loop_op
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing

from pipeline.errors import CaptureError
from pipeline.frontend.torchscript.flat_values import FlatLayout
from pipeline.frontend.torchscript.graph_tensors import CONSTANTS, constant_name
from pipeline.frontend.torchscript.python_ops import TensorBool, as_tensor
from pipeline.frontend.torchscript.raises import ScriptRaises, check, raises

if TYPE_CHECKING:
    from pipeline.frontend.torchscript.interpreter import GraphRun

#: Loops of a known number of rounds up to this are run round by round.
UNROLLED = 16

#: More rounds than that are an error where a loop cannot be kept a loop.
_LONG = 1024

_ENDLESS = 2**63 - 1


def run_branch(run: GraphRun, node: Any, env: dict[str, Any]) -> Sequence[Any]:
    """The results of a prim::If."""
    condition = env[node.inputsAt(0).debugName()]
    blocks = list(node.blocks())
    if isinstance(condition, bool):
        return _run_block(run, blocks[0 if condition else 1], env, [])
    region = _Region(run, blocks, env)
    failing = [raises(block) for block in blocks]
    if any(failing) and not all(failing):
        said = _said(region, blocks[failing.index(True)])
        if not run.trial:
            check(condition, failing[1], said)
        return _run_block(run, blocks[failing.index(False)], env, [])
    layout = FlatLayout.common(*(region.trial(block, []) for block in blocks))
    if run.trial:
        return layout.trial()
    branches = [
        region.traced(
            block, lambda operands: ([], operands), lambda results, _: layout.pack(results, with_integers=False)
        )
        for block in blocks
    ]
    predicate = condition.tensor if isinstance(condition, TensorBool) else condition
    return layout.unpack(torch.ops.higher_order.cond(predicate, *branches, region.operands))


def _said(region: _Region, block: Any) -> str:
    """What a block says that raises."""
    try:
        region.trial(block, [])
    except ScriptRaises as error:
        return error.said
    raise AssertionError("a block that raises has not")


def run_loop(run: GraphRun, node: Any, env: dict[str, Any]) -> Sequence[Any]:
    """The results of a prim::Loop: rounds, condition, carried → carried."""
    rounds, condition, *carried = (env[value.debugName()] for value in node.inputs())
    (block,) = node.blocks()
    if condition is False or (isinstance(rounds, int) and rounds <= 0):
        return carried
    loop = _Loop(run, block, env, rounds)
    known = isinstance(condition, bool) and isinstance(rounds, int) and loop.is_known(carried)
    if known and rounds <= UNROLLED:
        return loop.unrolled(carried)
    try:
        layout = loop.layout([condition, *carried])
    except Exception:  # what a trial raises can be anything that an op raises
        if known:
            return loop.unrolled(carried)
        raise
    return layout.trial()[1:] if run.trial else loop.rolled(layout, [condition, *carried])


class _Loop:
    """A prim::Loop whose body is `block`, on what is outside of it and what it carries."""

    def __init__(self, run: GraphRun, block: Any, env: dict[str, Any], rounds: Any):
        self._run = run
        self._block = block
        self._env = env
        self._rounds = rounds
        self._is_endless = isinstance(rounds, int) and rounds == _ENDLESS
        self._counts = not self._is_endless or bool(next(block.inputs()).uses())
        self._region = _Region(run, [block], env)

    def is_known(self, carried: list[Any]) -> bool:
        """Whether the first round tells whether there is a second one."""
        condition = self._region.trial(self._block, [0, *carried], may_change_lists=True)[0]
        return isinstance(condition, bool)

    def unrolled(self, carried: list[Any]) -> list[Any]:
        """The carried values after all rounds, run one by one."""
        condition, number = True, 0
        while condition and number < self._rounds:
            if number == _LONG:
                raise CaptureError(f"a loop over numbers has more than {_LONG} rounds and changes lists or shapes")
            condition, *carried = _run_block(self._run, self._block, self._env, [number, *carried])
            if not isinstance(condition, bool):
                raise CaptureError("a loop's condition depends on tensors in some rounds and on numbers in others")
            number += 1
        return carried

    def layout(self, state: list[Any]) -> FlatLayout:
        """The layout of (condition, carried) that fits before the first round and after each."""
        layout, number = FlatLayout.of(state), FlatLayout.common([0], [1])
        while True:
            with without_trace(self._region.operands):
                before = layout.trial()
                after = self._region.trial(self._block, [*number.trial(), *before[1:]])
                wider = FlatLayout.common(before, after)
            if [leaf.kind for leaf in wider.leaves] == [leaf.kind for leaf in layout.leaves]:
                return layout
            layout = wider

    def rolled(self, layout: FlatLayout, state: list[Any]) -> list[Any]:
        """The carried values after a while_loop."""
        counter = [0] if self._counts else []
        carried = [*counter, *layout.pack(state)]
        count = len(carried)
        operands = self._region.operands
        bounds = [self._rounds] if isinstance(self._rounds, torch.SymInt) else []

        def condition(*values: Any) -> Any:
            goes_on = layout.unpack(values[len(counter) : count])[0]
            if self._is_endless:
                return as_tensor(goes_on)
            is_left = values[0] < (values[-1] if bounds else self._rounds)
            return is_left if goes_on is True else torch.logical_and(as_tensor(goes_on), as_tensor(is_left))

        def split(values: Sequence[Any]) -> tuple[list[Any], Sequence[Any]]:
            number = values[0] if counter else 0
            return [number, *layout.unpack(values[len(counter) : count])[1:]], values[count : count + len(operands)]

        def packed(values: list[Any], taken: Sequence[Any]) -> list[Any]:
            return [*([taken[0] + 1] if counter else []), *layout.pack(values)]

        body = self._region.traced(self._block, split, packed)
        results = while_loop_op(condition, body, tuple(carried), (*operands, *bounds))
        return layout.unpack(results[len(counter) :])[1:]


class _Region:
    """What the blocks of a node take from outside, as the operands of cond or while_loop."""

    def __init__(self, run: GraphRun, blocks: list[Any], env: dict[str, Any]):
        self._run = run
        self._names = [name for name in _free_names(blocks) if name in env]
        self._tensors = sorted(set(run.tensors) & set(_attributes(blocks, env)))
        values = [*(env[name] for name in self._names), *(run.tensors[name] for name in self._tensors)]
        self._layout = FlatLayout.of(values)
        self.operands = tuple(self._layout.pack(values))

    def trial(self, block: Any, inputs: list[Any], may_change_lists: bool = False) -> list[Any]:
        """The results of a block on examples."""
        with without_trace(self.operands):
            examples, outside = torch_pytree.tree_map_only(torch.Tensor, _copy, inputs), self._layout.trial()
            borrowed = [] if may_change_lists else [*outside, *examples]
            return self._run_on(block, examples, outside, borrowed, trial=True)

    def traced(
        self,
        block: Any,
        split: Callable[[Sequence[Any]], tuple[list[Any], Sequence[Any]]],
        pack: Callable[[list[Any], Sequence[Any]], list[Any]],
    ) -> Callable[..., tuple[Any, ...]]:
        """The block as a function of tensors and integers.

        Args:
            block: takes inputs and what is outside.
            split: the inputs, and `operands`, of what the function takes.
            pack: what the function returns, of the block's results and what the function takes.
        """

        def function(*values: Any) -> tuple[Any, ...]:
            inputs, operands = split(values)
            outside = self._layout.unpack(operands)
            return tuple(pack(self._run_on(block, inputs, outside, [*outside, *inputs]), values))

        return function

    def _run_on(
        self, block: Any, inputs: list[Any], outside: list[Any], borrowed: list[Any], trial: bool = False
    ) -> list[Any]:
        env = dict(zip(self._names, outside, strict=False))
        tensors = dict(zip(self._tensors, outside[len(self._names) :], strict=True))
        lists = {id(value): value for value in _containers(borrowed)}
        return _run_block(self._run.within(tensors, lists, trial), block, env, inputs)


def _run_block(run: GraphRun, block: Any, env: dict[str, Any], inputs: list[Any]) -> list[Any]:
    env = dict(env)
    env.update(zip((value.debugName() for value in block.inputs()), inputs, strict=True))
    run.nodes(block, env)
    return [env[value.debugName()] for value in block.outputs()]


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().clone()


@contextlib.contextmanager
def without_trace(operands: Sequence[Any]) -> Iterator[None]:
    """Nothing is traced, and sizes that depend on data come and go."""
    fake = detect_fake_mode(operands)
    symbols = fake.shape_env.ignore_fresh_unbacked_symbols() if fake and fake.shape_env else contextlib.nullcontext()
    with disable_proxy_modes_tracing(), symbols:
        yield


def _free_names(blocks: Sequence[Any]) -> list[str]:
    """The names that blocks use, those of inner blocks too, in the order of first use; some are their own."""
    names: dict[str, None] = {}
    for block in blocks:
        for node in block.nodes():
            names |= dict.fromkeys(value.debugName() for value in node.inputs())
            names |= dict.fromkeys(_free_names(list(node.blocks())))
        names |= dict.fromkeys(value.debugName() for value in block.outputs())
    return list(names)


def _attributes(blocks: Sequence[Any], env: dict[str, Any]) -> list[str]:
    """The paths of what the blocks read of modules."""
    paths = {name: value.path for name, value in env.items() if hasattr(value, "path")}
    found: list[str] = []
    for block in blocks:
        _collect_attributes(block, paths, found)
    return found


def _collect_attributes(block: Any, paths: dict[str, str], found: list[str]) -> None:
    for node in block.nodes():
        if node.kind() in CONSTANTS:
            found.append(constant_name(node.output().debugName()))
        if node.kind() == "prim::GetAttr":
            owner = paths[node.inputsAt(0).debugName()]
            path = f"{owner}.{node.s('name')}" if owner else node.s("name")
            paths[node.output().debugName()] = path
            found.append(path)
        for inner in node.blocks():
            _collect_attributes(inner, paths, found)


def _containers(values: Sequence[Any]) -> list[Any]:
    """The lists and dicts among values and in them."""
    found = [value for value in values if isinstance(value, (list, dict))]
    for value in values:
        if isinstance(value, (list, tuple, dict)):
            found += _containers(list(value.values()) if isinstance(value, dict) else list(value))
    return found
