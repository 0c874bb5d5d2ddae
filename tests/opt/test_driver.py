"""pipeline-opt as a process: start-up, crashes, plugins of installed packages. What it prints is in lit_tests/tools."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from driver import MARKS, ROOT, run_opt

from pipeline.tools import opt

SOURCE = "func.func @f(%a: i32) -> i32 { %x = arith.muli %a, %a : i32 return %x : i32 }"


@pytest.mark.parametrize("option", ["--help", "--list-passes"])
def test_starts_without_what_is_slow_to_import(option):
    """torch takes a second, LLVM and torch's symbols a part of one."""
    code = f"""
import sys
from pipeline.tools.opt import main
try:
    main([{option!r}])
finally:
    print(*sorted({{name.partition(".")[0] for name in sys.modules}}), file=sys.stderr)
"""
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert finished.stdout
    assert not {"torch", "sympy", "llvmlite", "transformers"} & set(finished.stderr.split())


def test_torch_is_not_imported_for_mlir_input(tmp_path):
    (tmp_path / "torch.py").write_text("raise SystemExit('torch was imported')")
    finished = run_opt("--canonicalize", "--remove-unused-results", "--mlir-timing", stdin=SOURCE, paths=[tmp_path])
    assert (finished.returncode, "func.func @f" in finished.stdout) == (0, True), finished.stderr
    assert run_opt("--list-passes", paths=[tmp_path]).returncode == 0


def test_large_dialects_are_imported_when_they_are_used():
    code = (
        "import sys; from pipeline.passmanager import registry; from pipeline.mlir import nvgpu; registry.passes()\n"
        "assert 'torch_mlir.dialects.nvgpu' not in sys.modules\n"
        "assert nvgpu.LdMatrixOp and 'torch_mlir.dialects.nvgpu' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True, timeout=60)


def test_bytecode_is_the_same_module(tmp_path):
    path = tmp_path / "f.mlirbc"
    options = ("--dump-pass-pipeline", "--mlir-disable-threading=false", "--emit-bytecode")
    finished = run_opt("--cse", "--canonicalize=top-down=false", *options, "-o", path, stdin=SOURCE)
    assert (finished.returncode, finished.stdout) == (0, "")
    assert finished.stderr.startswith("builtin.module(cse,canonicalize{")
    assert finished.stderr.count("\n") == 1
    assert path.read_bytes().startswith(b"ML\xefR")
    assert run_opt(path).stdout == run_opt("--cse", stdin=SOURCE).stdout
    path.write_bytes(path.read_bytes()[:60])
    damaged = run_opt(path)
    assert damaged.returncode == 1 and "bytecode that cannot be read: damaged, or of" in damaged.stderr
    assert damaged.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--emit-bytecode", "--split-input-file"], "'--emit-bytecode' cannot be used together"),
        (["--mlir-print-ir-after-all", "--mlir-disable-threading=false"], "'--mlir-print-ir-after-all' cannot be used"),
    ],
)
def test_options_that_do_not_go_together(options, says, capsys):
    with pytest.raises(SystemExit) as stop:
        opt.main(options)
    assert stop.value.code == 1 and says in capsys.readouterr().err


def test_crash_leaves_one_reproducer_of_a_unique_name_and_no_core(tmp_path):
    reports = [
        run_opt("--test-abort", "--load-plugin", MARKS, stdin=SOURCE, cwd=tmp_path, env={"TMPDIR": str(tmp_path)})
        for _ in range(2)
    ]
    for report in reports:
        assert report.returncode == 1
        assert len(report.stderr.splitlines()) == 1
        assert report.stdout == ""
    named = {Path(re.search(r"see (\S+)$", report.stderr).group(1)) for report in reports}
    assert set(tmp_path.iterdir()) == named
    assert len(named) == 2


@pytest.mark.parametrize(("name", "says"), [("test-fail", "cannot multiply"), ("test-defect", "KeyError: 'missing'")])
def test_reproducer_fails_the_same_way_in_a_fresh_process(tmp_path, name, says):
    path = tmp_path / "reproducer.mlir"
    option = f"--mlir-pass-pipeline-crash-reproducer={path}"
    first = run_opt("--cse", f"--{name}", f"--load-plugin={MARKS}", option, stdin=SOURCE)
    again = run_opt("--run-reproducer", path)
    assert first.returncode == again.returncode == 1
    assert says in first.stderr
    assert first.stderr.replace("<stdin>", str(path)) == again.stderr


def test_defect_of_a_pass_shows_no_traceback():
    finished = run_opt("--test-defect", f"--load-plugin={MARKS}", stdin=SOURCE)
    assert finished.returncode == 1
    assert re.fullmatch(
        r"pipeline-opt: error: <stdin>: pass 'test-defect' failed on builtin.module: KeyError: 'missing' \(.*\)\n",
        finished.stderr,
    )


def test_output_file_survives_a_failure(tmp_path):
    output = tmp_path / "out.mlir"
    output.write_text("precious")
    assert run_opt("--test-fail", f"--load-plugin={MARKS}", "-o", output, stdin=SOURCE).returncode == 1
    assert output.read_text() == "precious"


def test_input_that_is_no_text_is_one_error(tmp_path):
    (tmp_path / "in.mlir").write_bytes(b"\xff\xfe\x00")
    finished = run_opt(tmp_path / "in.mlir")
    assert (finished.returncode, finished.stdout) == (1, "")
    assert finished.stderr == f"pipeline-opt: error: {tmp_path / 'in.mlir'}: not UTF-8 text\n"


def _install(tmp_path, folder, **replacements):
    """Installs a copy of the package in `folder` into a folder of its own, and returns that."""
    source, site = tmp_path / "source", tmp_path / "site"
    shutil.copytree(folder, source)
    for path in source.rglob("*.py"):
        text = path.read_text()
        for old, new in replacements.items():
            text = text.replace(old.replace("_", "-"), new)
        path.write_text(text)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*command, "--target", site, source], check=True, timeout=120)
    return site


def test_pass_of_an_installed_package(tmp_path):
    site = _install(tmp_path, ROOT / "tests" / "opt" / "user_package")
    listed = run_opt("--list-passes", paths=[site])
    assert re.search(r"--user-rename +on func.func: Put a prefix in front of each function's name\.", listed.stdout)
    mixed = run_opt("--pass-pipeline=canonicalize,func.func(user-rename{prefix=p_}),cse", stdin=SOURCE, paths=[site])
    assert "func.func @p_f" in mixed.stdout, mixed.stderr


def test_installed_package_that_takes_a_name_of_ours(tmp_path):
    site = _install(tmp_path, ROOT / "tests" / "opt" / "user_package", user_rename="remove-unused-results")
    finished = run_opt("--cse", stdin=SOURCE, paths=[site])
    assert finished.returncode == 1
    assert finished.stderr == (
        "pipeline-opt: error: two passes are called 'remove-unused-results': that of package user-passes, "
        "entry point 'user' and that of pipeline.passes.tensor.remove_unused_results\n"
    )
