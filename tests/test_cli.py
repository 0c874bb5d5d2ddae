"""The drivers pipeline-compile and pipeline-run."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
import torch

import pipeline
from pipeline.tools import compile as compile_driver
from pipeline.tools import run as run_driver
from pipeline.tools.agreement import difference
from pipeline.tools.benchmark import comparison, measure

STAGES = ("torch", "linalg", "fused", "kernels", "llvm")

NETS = """
import torch
from torch import nn
from helper import SIZE


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(SIZE, 3)

    def forward(self, x, scale=None):
        y = torch.relu(self.linear(x))
        return y if scale is None else {"y": y * scale, "n": 3, "x": x + 1}


class Branches(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x
        return -x


def model():
    return Net().eval(), (torch.ones(2, SIZE),)


def scaled():
    return Net().eval(), (torch.ones(2, SIZE),), {"scale": torch.ones(3)}


def dynamic():
    return {"model": Net(), "args": (torch.ones(2, SIZE),), "dynamic_shapes": ({0: torch.export.Dim("n")},)}


def half():
    return nn.ReLU(), (torch.ones(3, dtype=torch.bfloat16),)


def branches():
    return Branches(), (torch.ones(2),)


def other_weights():
    net, args = model()
    net.linear.bias.data.add_(2)
    return net, args


def only_the_module():
    return Net()


def args_no_tuple():
    return Net(), torch.ones(2, SIZE)


def four():
    return 1, 2, 3, 4


def misspelled():
    return {"model": Net(), "arg": ()}


def fails():
    return undefined


NUMBER = 3
"""

MLIR = """
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %b = math.exp %a : tensor<4xf32>
  return %b : tensor<4xf32>
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    (folder / "nets.py").write_text(NETS)
    (folder / "helper.py").write_text("SIZE = 4\n")
    (folder / "exp.mlir").write_text(MLIR)
    np.save(folder / "x.npy", np.ones((2, 4), np.float32))
    np.save(folder / "scale.npy", np.full(3, 2, np.float32))
    return folder


@pytest.fixture(scope="module")
def nets(folder):
    return str(folder / "nets.py")


@pytest.fixture(scope="module")
def artifact(folder, nets):
    path = str(folder / "net.pipeline")
    assert compile_driver.main([nets, "-o", path]) == 0
    return path


@pytest.fixture(scope="module")
def scaled(folder, nets):
    path = str(folder / "scaled.pipeline")
    assert compile_driver.main([f"{nets}:scaled", "-o", path]) == 0
    return path


def fails(capsys, driver, *argv):
    """Runs a driver that is to fail; returns the one line that it says."""
    try:
        code = driver.main(list(map(str, argv)))
    except SystemExit as stop:
        code = stop.code
    said = capsys.readouterr()
    assert code == 1
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert re.match(r"pipeline-(compile|run): error: ", said.err)
    return said.err


# pipeline-compile


def test_a_factory(artifact):
    result = pipeline.load(artifact)(np.ones((2, 4), np.float32))
    assert result.shape == (2, 3)


@pytest.mark.parametrize("emit", [*STAGES, "asm"])
def test_emit_on_stdout(nets, capsys, emit):
    assert compile_driver.main([nets, f"--emit={emit}", "-o", "-"]) == 0
    said = capsys.readouterr()
    expected = {"torch": "torch.aten", "linalg": "linalg.", "fused": "fusion.group", "kernels": "pipeline.kernel"}
    assert (expected | {"llvm": "llvm.func", "asm": "pipeline_main:"})[emit] in said.out
    assert said.err == ""


def test_emit_an_object_file(nets, folder):
    path = folder / "net.o"
    assert compile_driver.main([nets, "--emit=obj", "-o", str(path)]) == 0
    assert path.read_bytes().startswith(b"\x7fELF")
    assert b"pipeline_main" in path.read_bytes()


def test_dump_dir_has_every_stage(nets, tmp_path, capsys):
    dumps = tmp_path / "new" / "dumps"
    assert compile_driver.main([nets, "--dump-dir", str(dumps), "-o", str(tmp_path / "net")]) == 0
    names = [f"{number:02}-{stage}.mlir" for number, stage in enumerate(STAGES)]
    assert sorted(entry.name for entry in dumps.iterdir()) == [*names, "05-asm.s"]
    assert compile_driver.main([nets, "--emit=linalg"]) == 0
    assert capsys.readouterr().out == (dumps / "01-linalg.mlir").read_text()


def test_a_dump_can_be_compiled(nets, tmp_path, folder, capsys):
    assert compile_driver.main([nets, "--emit=linalg", "-o", str(tmp_path / "net.mlir")]) == 0
    assert compile_driver.main([str(tmp_path / "net.mlir"), "-o", str(tmp_path / "net")]) == 0
    exe = pipeline.load(tmp_path / "net")
    assert [argument.name for argument in exe.signature.arguments] == ["arg0", "arg1", "arg2"]


def test_timing_remarks_and_printing(nets, tmp_path, capsys):
    argv = [nets, "-o", str(tmp_path / "net"), "--timing", "--remarks", "--print-ir-after=fused"]
    assert compile_driver.main(argv) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "IR after fused" in said.err and "fusion.group" in said.err and "IR after linalg" not in said.err
    assert "[hoist-to-prepare, " in said.err
    stages = ("torch.export", "import", "functionalize", "to linalg", "simplify", "hoist-to-prepare", "bufferize")
    for stage in (*stages, "vectorize", "machine code", "load and prepare weights", "Rest", "Total"):
        assert re.search(rf"^ +\d+\.\d+ \([ \d.]+%\) +\d+\.\d+ \([ \d.]+%\)  +{stage}$", said.err, re.MULTILINE), stage


def test_remarks_of_a_compilation_that_stops_early(nets, capsys):
    assert compile_driver.main([nets, "--emit=kernels", "--remarks"]) == 0
    assert "[hoist-to-prepare, " in capsys.readouterr().err


def test_disable_and_passes(nets, capsys):
    assert compile_driver.main([nets, "--emit=kernels", "--disable=form-groups", "--disable=cse"]) == 0
    assert "pipeline.kernel" not in capsys.readouterr().out
    assert compile_driver.main([nets, "--emit=fused", "--passes=linalg=linalg-generalize-named-ops"]) == 0
    assert "linalg.matmul" not in capsys.readouterr().out


def test_dynamic_shapes(nets, tmp_path):
    assert compile_driver.main([f"{nets}:dynamic", "-o", str(tmp_path / "net")]) == 0
    assert pipeline.load(tmp_path / "net")(np.ones((7, 4), np.float32)).shape == (7, 3)


def test_an_archive(tmp_path):
    torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.ones(3),)), tmp_path / "relu.pt2")
    assert compile_driver.main([str(tmp_path / "relu.pt2"), "-o", str(tmp_path / "relu")]) == 0
    np.testing.assert_array_equal(pipeline.load(tmp_path / "relu")(-np.ones(3, np.float32)), np.zeros(3))


def test_capture_by_script(nets, tmp_path):
    assert compile_driver.main([f"{nets}:half", "--capture=script", "-o", str(tmp_path / "half")]) == 0


def test_a_cpu_by_name(nets, tmp_path, capsys):
    for cpu in ("x86-64", "x86-64-v3"):
        assert compile_driver.main([nets, f"--cpu={cpu}", "-o", str(tmp_path / cpu)]) == 0
    assert "%ymm" not in _assembly(nets, "x86-64", capsys)


def _assembly(nets, cpu, capsys):
    capsys.readouterr()
    assert compile_driver.main([nets, f"--cpu={cpu}", "--emit=asm"]) == 0
    return capsys.readouterr().out


def test_help_is_worth_reading(capsys):
    for driver, words in (
        (compile_driver, ("FILE.py[:factory]", "--emit", "examples:", "00-torch.mlir", "dynamic_shapes")),
        (run_driver, ("--input", "--benchmark", "examples:", ".npy")),
    ):
        with pytest.raises(SystemExit) as stop:
            driver.main(["--help"])
        assert stop.value.code == 0
        said = capsys.readouterr().out
        for word in words:
            assert word in said


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        ("Net", "nets.py:Net: is a class; expected a function that returns (model, args)"),
        ("only_the_module", "nets.py:only_the_module: returned a Net; expected (model, args)"),
        ("args_no_tuple", "args is a Tensor; expected a tuple of example arguments"),
        ("four", "returned 4 values; expected (model, args)"),
        ("misspelled", "returned a dict with model, arg; expected (model, args)"),
        ("fails", "nets.py:fails: NameError: name 'undefined' is not defined"),
        ("absent", "has no function 'absent'; its functions are model, scaled, dynamic"),
        ("NUMBER", "nets.py:NUMBER: is a int; expected a function"),
        ("branches", 'torch.cond or torch.while_loop, or compile with capture="script"'),
    ],
)
def test_wrong_factory(nets, tmp_path, capsys, factory, message):
    assert message in fails(capsys, compile_driver, f"{nets}:{factory}", "-o", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["model.onnx", "-o", "{out}"], "model.onnx: expected FILE.py[:factory], model.pt2 or FILE.mlir"),
        (["absent.py", "-o", "{out}"], "absent.py: no such file"),
        (["absent.mlir", "-o", "{out}"], "absent.mlir: no such file"),
        (["absent.pt2", "-o", "{out}"], "absent.pt2: no such file"),
        (["{nets}"], "--emit=exe is binary: say with -o which file it goes to"),
        (["{nets}", "--emit=wasm"], "argument --emit: invalid choice: 'wasm'"),
        (["{nets}", "-o", "{out}/absent/out"], "cannot be written: there is no folder"),
        (["{nets}", "-o", "{folder}"], "cannot be written: it is a folder"),
        (["{nets}", "-o", "{out}", "--dump-dir", "{nets}/x"], "cannot be made a folder"),
        (["{nets}", "-o", "{out}", "--target=cuda9"], "target='cuda9'"),
        (["{nets}", "-o", "{out}", "--cpu=z80"], "cpu='z80': expected native or one of x86-64"),
        (["{nets}", "-o", "{out}", "--disable=no-such-pass"], "no-such-pass"),
        (["{nets}", "-o", "{out}", "--passes=cse"], "--passes=cse: expected STAGE=PIPELINE"),
        (["{nets}", "-o", "{out}", "--passes=llvm=cse"], "with a stage of linalg, fused, kernels"),
        (["{nets}", "-o", "{out}", "--passes=linalg=no-such-pass"], "no-such-pass"),
        (["{nets}", "-o", "{out}", "--unknown"], "unrecognized arguments: --unknown"),
        ([], "the following arguments are required: MODEL"),
    ],
)
def test_wrong_command_line(nets, folder, tmp_path, capsys, argv, message):
    out = tmp_path / "out"
    filled = [word.format(nets=nets, out=out, folder=folder) for word in argv]
    assert message in fails(capsys, compile_driver, *filled)
    assert not out.exists()


def test_wrong_mlir(tmp_path, capsys):
    (tmp_path / "bad.mlir").write_text("func.func @main(")
    assert "not valid MLIR" in fails(capsys, compile_driver, tmp_path / "bad.mlir", "-o", tmp_path / "out")


def test_a_failed_write_leaves_the_old_file(nets, tmp_path, capsys, monkeypatch):
    path = tmp_path / "out.mlir"
    path.write_text("old")

    def write_bytes(self, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", write_bytes)
    assert "No space left" in fails(capsys, compile_driver, nets, "--emit=linalg", "-o", path)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.mlir"]


WITHOUT_TORCH = """
import sys
from pipeline.tools.{driver} import main
assert main(sys.argv[1:]) == 0
print([name for name in sys.modules if name.split(".")[0] in {forbidden}])
"""


def loaded(driver, forbidden, *argv):
    """Which of the forbidden packages a driver imports."""
    program = WITHOUT_TORCH.format(driver=driver, forbidden=forbidden)
    done = subprocess.run([sys.executable, "-c", program, *map(str, argv)], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


def test_mlir_is_compiled_without_torch_and_run_without_mlir(folder, tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(4, np.float32))
    assert loaded("compile", ("torch",), folder / "exp.mlir", "-o", tmp_path / "exp") == "[]"
    argv = (tmp_path / "exp", "--input", tmp_path / "a.npy", "--output", tmp_path / "b.npy", "--benchmark")
    assert loaded("run", ("torch", "torch_mlir"), *argv) == "[]"
    np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), np.ones(4))


def test_progress_on_a_terminal_only(folder, tmp_path):
    argv = [sys.executable, "-m", "pipeline.tools.compile", str(folder / "exp.mlir"), "-o", str(tmp_path / "exp")]
    piped = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert piped.stdout == piped.stderr == ""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(argv, stderr=theirs, stdout=subprocess.DEVNULL, env=os.environ | {"TERM": "xterm"})
    os.close(theirs)
    shown = b""
    while chunk := _read(ours):
        shown += chunk
    os.close(ours)
    assert process.wait() == 0
    assert b"compiling" in shown


def _read(descriptor):
    try:
        return os.read(descriptor, 4096)
    except OSError:  # the other end is closed
        return b""


# pipeline-run


def test_run_prints_a_summary(artifact, folder, capsys):
    assert run_driver.main([artifact, "--input", str(folder / "x.npy")]) == 0
    assert re.fullmatch(r"result: float32\[2, 3\] = .*, \.\.\. \(min .*, mean .*, max .*\)\n", capsys.readouterr().out)


def test_run_writes_outputs(artifact, folder, tmp_path, capsys):
    out = tmp_path / "y.npy"
    assert run_driver.main([artifact, "--input", f"x={folder / 'x.npy'}", "--output", str(out)]) == 0
    assert capsys.readouterr().out == ""
    np.testing.assert_array_equal(np.load(out), pipeline.load(artifact)(np.ones((2, 4), np.float32)))


def test_run_with_names(scaled, folder, tmp_path, capsys):
    x, scale, out = folder / "x.npy", folder / "scale.npy", tmp_path / "x1.npy"
    argv = [scaled, "--input", f"scale={scale}", "--input", str(x)]
    assert run_driver.main(argv) == 0
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == [
        "result['y']",
        "result['n']",
        "result['x']",
    ]
    assert run_driver.main([*argv, "--output", f"result['x']={out}"]) == 0
    np.testing.assert_array_equal(np.load(out), np.full((2, 4), 2))


def test_run_bfloat16(nets, tmp_path, capsys):
    half = str(tmp_path / "half")
    assert compile_driver.main([f"{nets}:half", "-o", half]) == 0
    x = np.array([-1, 2, 3], ml_dtypes.bfloat16)
    np.save(tmp_path / "a.npy", x)
    np.save(tmp_path / "words.npy", x.view(np.uint16))
    for name in ("a.npy", "words.npy"):
        assert run_driver.main([half, "--input", str(tmp_path / name), "--output", str(tmp_path / "b.npy")]) == 0
        np.testing.assert_array_equal(np.load(tmp_path / "b.npy").view(ml_dtypes.bfloat16), np.maximum(x, 0))
        assert run_driver.main([half, "--input", str(tmp_path / name)]) == 0
        assert capsys.readouterr().out.startswith("result: bfloat16[3] = 0, 2, 3")


def test_benchmark(artifact, folder, capsys, monkeypatch):
    calls = []
    original = pipeline.load
    monkeypatch.setattr(run_driver, "load", lambda path: counting(original(path), calls))
    argv = [artifact, "--input", str(folder / "x.npy"), "--benchmark", "--repeats", "7", "--warmup", "2"]
    assert run_driver.main(argv) == 0
    assert len(calls) == 1 + 2 + 7
    heads, numbers = capsys.readouterr().out.splitlines()[-2:]
    names = [name.strip() for name in heads.split("(ms)")[:-1]]
    values = dict(zip(names, map(float, numbers.split()), strict=True))
    assert list(values) == ["mean", "median", "max", "min", "std"]
    assert 0 < values["min"] <= values["median"] <= values["max"]
    assert values["min"] <= values["mean"] <= values["max"]
    assert values["std"] >= 0


def test_benchmark_against_another(artifact, folder, nets, tmp_path, capsys, monkeypatch):
    other = str(tmp_path / "plain.pipeline")
    assert compile_driver.main([nets, "-o", other, "--disable", "fuse-elementwise"]) == 0
    calls = {artifact: [], other: []}
    original = pipeline.load
    monkeypatch.setattr(run_driver, "load", lambda path: counting(original(path), calls[path]))
    argv = [artifact, "--input", str(folder / "x.npy"), "--benchmark", "--repeats", "7", "--warmup", "2"]
    assert run_driver.main([*argv, "--against", other]) == 0
    assert [len(own) for own in calls.values()] == [1 + 2 + 7] * 2
    _, title, heads, *lines, ratio = capsys.readouterr().out.splitlines()
    assert title == "Execution time summary of 7 calls each, in turn:"
    assert heads.split("(ms)")[1].strip() == "median"
    assert [line.split()[0] for line in lines] == [artifact, other]
    first, second = (float(line.split()[2]) for line in lines)
    assert float(ratio.removeprefix("ratio of the medians, second to first: ")) == pytest.approx(second / first, 0.1)


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        ("other_weights", r"result differs: error [0-9.]+, where the largest number is "),
        ("scaled", "--input scale: missing"),
    ],
)
def test_against_a_model_that_differs(factory, message, artifact, folder, nets, tmp_path, capsys):
    other = str(tmp_path / "other.pipeline")
    assert compile_driver.main([f"{nets}:{factory}", "-o", other]) == 0
    argv = [artifact, "--input", str(folder / "x.npy"), "--benchmark", "--against", other]
    assert run_driver.main(argv) == 1
    said = capsys.readouterr()
    assert re.search(message, said.err)
    assert "Execution time" not in said.out


def test_against_needs_benchmark(artifact, folder, capsys):
    said = fails(capsys, run_driver, artifact, "--input", folder / "x.npy", "--against", artifact)
    assert "--against: needs --benchmark" in said


ONES = np.ones(3, np.float32)
HALF = np.ones(3, ml_dtypes.bfloat16)


@pytest.mark.parametrize(
    ("value", "other", "differs"),
    [
        (ONES, ONES + np.float32(1e-6), False),
        (ONES, ONES + np.float32(1e-3), True),
        (HALF, HALF + ml_dtypes.bfloat16(0.01), False),
        (HALF, HALF * 2, True),
        (ONES * np.nan, ONES * np.nan, False),
        (ONES * np.inf, ONES * np.inf, False),
        (ONES * np.inf, ONES * -np.inf, True),
        (ONES, np.array([1, 1, np.nan], np.float32), True),
        (ONES[:0], ONES[:0], False),
        (ONES, ONES[:2], True),
        (ONES, ONES.astype(np.float64), True),
        (np.arange(3), np.arange(3), False),
        (np.arange(3), np.arange(3) + 1, True),
        (None, None, False),
        (3, 4, True),
    ],
)
def test_results_agree_up_to_rounding(value, other, differs):
    assert (difference({"result": value}, {"result": other}) is not None) == differs


def test_results_of_other_names_differ():
    assert difference({"result": 1}, {"result.logits": 1}) == "its results are result.logits, expected result"


def test_times_are_taken_in_turn(monkeypatch):
    clock = iter(range(100))
    monkeypatch.setattr("pipeline.tools.benchmark.time.perf_counter", lambda: next(clock))
    order = []
    times = measure([lambda: order.append("a"), lambda: order.append("b")], warmup=1, repeats=2)
    assert order == ["a", "b"] * 3
    assert times == [[1000.0, 1000.0]] * 2
    assert "ratio of the medians, second to first: 2.000" in comparison({"a": [1.0, 2.0], "b": [2.0, 4.0]})


def counting(executable, calls):
    """The executable, with its calls noted."""

    class Counting:
        signature = executable.signature

        def __call__(self, *args, **kwargs):
            calls.append(args)
            return executable(*args, **kwargs)

    return Counting()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "--input x: missing; expected float32[2, 4]"),
        (["--input", "{folder}/scale.npy"], "argument x: expected float32[2, 4], got float32[3]"),
        (["--input", "{folder}/absent.npy"], "absent.npy: cannot be read: No such file or directory"),
        (["--input", "{folder}/nets.py"], "nets.py: not a .npy file"),
        (["--input", "{folder}"], "cannot be read"),
        (["--input", "{folder}/objects.npy"], "objects.npy: not a .npy file: Object arrays cannot be loaded"),
        (["--input", "{folder}/x.npz"], "x.npz: an archive of arrays; expected the .npy file of one"),
        (["--input", "{folder}/cut.npy"], "cut.npy: not a .npy file"),
        (["--input", "{folder}/empty.npy"], "empty.npy: not a .npy file"),
        (["--input", "x={folder}/x.npy", "--input", "x={folder}/x.npy"], "--input x: given twice"),
        (["--input", "{folder}/x.npy", "--input", "{folder}/x.npy"], "the model has no input for it; it has x"),
        (
            ["--input", "{folder}/x.npy", "--output", "a", "--output", "b"],
            "the model has no output for it; it has result",
        ),
        (["--input", "{folder}/x.npy", "--output", "{folder}/absent/y.npy"], "cannot be written"),
        (
            ["--input", "{folder}/x.npy", "--benchmark", "--repeats", "0"],
            "argument --repeats: takes a number from 1, not '0'",
        ),
    ],
)
def test_wrong_run(artifact, folder, capsys, argv, message):
    np.save(folder / "objects.npy", np.array([{}]), allow_pickle=True)
    np.savez(folder / "x.npz", np.ones(2))
    (folder / "cut.npy").write_bytes((folder / "x.npy").read_bytes()[:100])
    (folder / "empty.npy").write_bytes(b"")
    assert message in fails(capsys, run_driver, artifact, *(word.format(folder=folder) for word in argv))


def test_run_what_is_no_artifact(folder, capsys):
    assert "no artifact" in fails(capsys, run_driver, folder / "x.npy")
    assert "cannot be read" in fails(capsys, run_driver, folder / "absent")
