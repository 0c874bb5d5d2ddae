"""What runs away or crashes in torch-mlir's passes is an op that cannot be lowered: in time, and in this process."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
import torch
from function_model import Function

import pipeline
from pipeline import supervised
from pipeline.frontend.importer import torch_to_linalg
from pipeline.frontend.importer.supervised_lowering import lower_supervised
from pipeline.frontend.shapes.promises import Promises
from pipeline.mlir import context, ir
from pipeline.remarks import note

#: torch-mlir never ends on this one, and takes all memory.
ENDLESS = """
func.func @main(%x: !torch.vtensor<[2,4],f32>, %m: !torch.vtensor<[2,4],i1>) -> !torch.vtensor<[?],f32> {
  %y = torch.aten.sin %x : !torch.vtensor<[2,4],f32> -> !torch.vtensor<[2,4],f32> loc("net.py":1:1)
  %l = torch.prim.ListConstruct %m : (!torch.vtensor<[2,4],i1>) -> !torch.list<vtensor>
  %r = torch.aten.index.Tensor %y, %l : !torch.vtensor<[2,4],f32>, !torch.list<vtensor> -> !torch.vtensor<[?],f32>
    loc("net.py":2:1)
  return %r : !torch.vtensor<[?],f32>
}
"""

#: torch-mlir divides by the size of the tensor.
CRASHING = """
func.func @main(%x: !torch.vtensor<[0,4],f32>) -> !torch.vtensor<[2,0],f32> {
  %a = torch.constant.int 2
  %b = torch.constant.int 0
  %l = torch.prim.ListConstruct %a, %b : (!torch.int, !torch.int) -> !torch.list<int>
  %r = torch.aten.view %x, %l : !torch.vtensor<[0,4],f32>, !torch.list<int> -> !torch.vtensor<[2,0],f32>
    loc("net.py":3:1)
  return %r : !torch.vtensor<[2,0],f32>
}
"""


def lower(source):
    module = ir.Module.parse(source, context())
    return lower_supervised(module, lambda stage, text: None, Promises([], [], {}, False))


def children():
    """The processes that this one has started and that are there."""
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


@pytest.fixture(autouse=True)
def supervised_always(monkeypatch):
    """Programs of these tests have ops that run away because the tests make them."""
    monkeypatch.setenv("PIPELINE_SUPERVISE", "all")


@pytest.fixture(autouse=True)
def leaves_no_children():
    """Those that were there before, such as multiprocessing's tracker of resources, are another test's."""
    before = children()
    yield
    assert children() <= before


def spin():
    while True:
        time.sleep(0.01)


def interrupt():
    """Ctrl-C while the parent waits."""
    os.kill(os.getppid(), signal.SIGINT)
    spin()


def allocate():
    held = []
    while True:
        held.append(bytearray(b"x") * 2**24)


def crash():
    signal.signal(signal.SIGABRT, signal.SIG_DFL)
    os.abort()


@pytest.fixture
def fails_on_tanh(monkeypatch):
    """Has the lowering of everything with a tanh do something else."""
    plain = torch_to_linalg._lower

    def install(instead):
        def lowered(module, *args):
            if "aten.tanh" in str(module):
                instead()
            return plain(module, *args)

        monkeypatch.setattr(torch_to_linalg, "_lower", lowered)

    return install


def test_endless_passes(monkeypatch):
    monkeypatch.setenv("PIPELINE_LOWERING_SECONDS", "1.5")
    message = (
        r"aten.index.Tensor at net.py:2: took more than 1.5 s \(PIPELINE_LOWERING_SECONDS .*convert-torch-to-linalg"
    )
    with pytest.raises(pipeline.UnsupportedOpError, match=message):
        lower(ENDLESS)


def test_a_crash_of_passes():
    message = "aten.view at net.py:3: ended the process with SIGFPE in .*convert-torch-to-linalg"
    with pytest.raises(pipeline.UnsupportedOpError, match=message):
        lower(CRASHING)


REASONS = {
    "time": (spin, "took more than 1 s"),
    "memory": (allocate, "took more than 0.3 GiB of memory"),
    "crash": (crash, "ended the process with SIGABRT"),
}


@pytest.mark.parametrize("kind", REASONS)
def test_torch_runs_the_op(kind, fails_on_tanh, monkeypatch):
    instead, reason = REASONS[kind]
    fails_on_tanh(instead)
    monkeypatch.setenv("PIPELINE_LOWERING_SECONDS", "1" if kind == "time" else "60")
    monkeypatch.setenv("PIPELINE_LOWERING_GIGABYTES", "0.3")
    model, x = Function(lambda x: (x @ x).tanh().exp() + 1), torch.randn(4, 4)
    executable = pipeline.compile(model, (x,), fallback="torch")
    (fallback,) = executable.fallbacks
    assert fallback.op == "aten.tanh" and reason in fallback.reason
    assert executable.kernels
    torch.testing.assert_close(executable(x), model(x))
    with pytest.raises(pipeline.UnsupportedOpError, match=f"aten.tanh at .*py:.*{reason}"):
        pipeline.compile(model, (x,), fallback="error")


def test_interrupted(fails_on_tanh):
    fails_on_tanh(interrupt)
    with pytest.raises(KeyboardInterrupt):
        pipeline.compile(Function(torch.tanh), (torch.ones(3),))
    assert pipeline.compile(Function(torch.sin), (torch.ones(3),))(torch.zeros(3)).sum() == 0


def test_other_errors_are_told_as_they_are(fails_on_tanh):
    class Odd(Exception):
        def __init__(self, first, second):
            super().__init__(f"{first} and {second}")

    def fail():
        raise Odd("one", "another") from None

    fails_on_tanh(fail)
    with pytest.raises(Exception, match="one and another"):
        pipeline.compile(Function(torch.tanh), (torch.ones(3),))


def test_stages_and_remarks_come_back(fails_on_tanh):
    fails_on_tanh(lambda: note("test", "analysis", "aten.tanh", "seen in the child"))
    stages = []

    def observer(stage, text):
        stages.append((stage, text))

    executable = pipeline.compile(Function(torch.tanh), (torch.ones(3),), observer=observer)
    assert [stage for stage, _ in stages][:2] == ["torch", "linalg"]
    assert "!torch.vtensor" in stages[0][1] and executable.ir("torch") == stages[0][1]
    assert [remark.reason for remark in executable.remarks if remark.pass_name == "test"] == ["seen in the child"]


def test_a_limit_that_is_none(monkeypatch):
    for value in ("soon", "0", "-3", "nan"):
        monkeypatch.setenv("PIPELINE_LOWERING_SECONDS", value)
        with pytest.raises(pipeline.OptionError, match="PIPELINE_LOWERING_SECONDS=.*expected a number above 0"):
            supervised.ResourceLimits.of_environment()
