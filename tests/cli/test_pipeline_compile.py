"""The driver pipeline-compile."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from drivers import fails

import pipeline
from pipeline.tools import compile as compile_driver
from pipeline.tools import run as run_driver
from pipeline.tools import timing_report

STAGES = ("torch", "linalg", "fused", "kernels", "llvm")


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


def test_the_passes_are_printed(nets, capsys):
    printed = []
    for emit in ("linalg", "llvm"):
        assert compile_driver.main([nets, f"--emit={emit}", "--print-pipeline"]) == 0
        said = capsys.readouterr()
        assert ("linalg." if emit == "linalg" else "llvm.func") in said.out
        printed.append(said.err)
    assert printed[0] == printed[1]
    assert re.fullmatch(r"builtin\.module\(place-barriers,.*,lower-chunks-to-libgomp\)\n", printed[0])


def test_a_stage_that_the_target_does_not_have(nets, capsys):
    assert "stage 'llvm': this executable has torch, linalg, fused, kernels, gpu" in fails(
        capsys, compile_driver, nets, "--emit=llvm", "--target=vulkan"
    )


def test_a_dump_can_be_compiled(nets, tmp_path, folder, capsys):
    assert compile_driver.main([nets, "--emit=linalg", "-o", str(tmp_path / "net.mlir")]) == 0
    assert compile_driver.main([str(tmp_path / "net.mlir"), "-o", str(tmp_path / "net")]) == 0
    exe = pipeline.load(tmp_path / "net")
    assert [argument.name for argument in exe.signature.arguments] == ["arg0", "arg1", "arg2"]


def test_timing_remarks_and_printing(nets, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(timing_report, "SMALLEST", 0.0)  # however fast the machine
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


class Louder(torch.nn.Module):
    def forward(self, sound: torch.Tensor, rate: int) -> torch.Tensor:
        return sound * 2 if rate == 8000 else sound * 3


@pytest.mark.parametrize("ending", ["pt", "pth", "jit"])
def test_a_torchscript_archive(tmp_path, ending, capsys):
    torch.jit.script(Louder()).save(str(tmp_path / f"louder.{ending}"))
    np.save(tmp_path / "sound.npy", np.ones(5, np.float32))
    inputs = ["--input", str(tmp_path / "sound.npy"), "--input=rate=8000"]
    model = str(tmp_path / f"louder.{ending}")
    assert compile_driver.main([model, *inputs, "-o", str(tmp_path / "louder")]) == 0
    np.testing.assert_array_equal(pipeline.load(tmp_path / "louder")(np.ones(5, np.float32), rate=8000), np.full(5, 2))
    assert run_driver.main([model, *inputs]) == 0
    assert "float32[5] = 2, 2" in capsys.readouterr().out
    assert "args: example arguments are needed" in fails(capsys, compile_driver, model, "-o", tmp_path / "out")


def test_files_without_a_program(tmp_path, capsys):
    torch.save(torch.nn.ReLU().state_dict(), tmp_path / "weights.pt")
    (tmp_path / "text.pt").write_text("no archive")
    (tmp_path / "text.pt2").write_text("no archive")
    (tmp_path / "folder.jit").mkdir()
    (tmp_path / "net.h5").write_text("no model")
    for name, message in {
        "weights.pt": "torch.save wrote it",
        "text.pt": "no TorchScript archive",
        "text.pt2": "not a .pt2 archive",
        "folder.jit": "is a folder",
        "net.h5": "expected a .pt2 archive, a TorchScript archive",
    }.items():
        assert message in fails(capsys, compile_driver, tmp_path / name, "-o", tmp_path / "out")


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
        (["model.onnx", "-o", "{out}"], "model.onnx: no such file"),
        (["model.safetensors", "-o", "{out}"], "model.safetensors: it holds weights, no program"),
        (["net.h5", "-o", "{out}"], "net.h5: no such file"),
        (["absent.jit", "-o", "{out}"], "absent.jit: no such file"),
        (["absent.pth", "-o", "{out}"], "absent.pth: no such file"),
        (["{folder}/folder.pt", "-o", "{out}"], "folder.pt: no such file"),
        (["{nets}", "-o", "{out}", "--input=x.npy"], "--input is for TorchScript archives"),
        (["net.pt", "-o", "{out}", "--input=absent.npy"], "absent.npy: cannot be read"),
        (["net.pt", "-o", "{out}", "--input=loud"], "--input loud: expected a .npy file or a number"),
        (["net.pt", "-o", "{out}", "--input=n=1", "--input=n=2"], "--input n: given twice"),
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


def test_weights_as_bytes(folder, capsys):
    source, output = folder / "wide.py", folder / "wide.net"
    source.write_text(
        "import torch\n"
        "def model():\n"
        "    torch.manual_seed(0)\n"
        "    return torch.nn.Linear(256, 96), (torch.ones(2, 256),)\n"
    )
    assert compile_driver.main([str(source), "--weights=int8", "--group=64", "--emit=kernels"]) == 0
    assert "x64x96xi8>" in capsys.readouterr().out
    x = np.ones((2, 256), np.float32)
    results = []
    for weights in ("f32", "int8"):
        assert compile_driver.main([str(source), f"--weights={weights}", "-o", str(output)]) == 0
        results.append(pipeline.load(output)(x))
    assert 0 < np.abs(results[0] - results[1]).max() < 0.02
    said = fails(capsys, compile_driver, source, "--group=64", "-o", output)
    assert "group=64: there are groups of quantized weights only" in said


def test_prepacked(folder, nets, capsys):
    whole, packed = folder / "whole.net", folder / "packed.net"
    for path, options in ((whole, []), (packed, ["--prepacked"])):
        assert compile_driver.main([nets, *options, "-o", str(path)]) == 0
    x = np.ones((2, 4), np.float32)
    assert np.array_equal(pipeline.load(whole)(x), pipeline.load(packed)(x))
    said = fails(capsys, compile_driver, nets, "--prepacked", "--emit=linalg")
    assert "--prepacked: is for --emit=exe" in said
