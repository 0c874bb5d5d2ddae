"""What a report has: written down while a model is compiled once more, measured, compared."""

from __future__ import annotations

import pytest
import torch
from report_models import branches, net, rounds

import pipeline
from pipeline.errors import PipelineError
from pipeline.fusion_rules.reasons import REASONS
from pipeline.report.collect import contents_of
from pipeline.report.comparison import compare
from pipeline.report.hierarchy import common_path, with_modules
from pipeline.report.kernel_places import KernelPlaces
from pipeline.report.page import page, read
from pipeline.report.recorder.text_changes import change
from pipeline.report.recording import Graph, GraphBox, GraphNode, ModelNode
from pipeline.tools import compile as compile_driver
from pipeline.tools import report as report_driver
from pipeline.tools import run as run_driver


def kernels(contents):
    return [node for node in contents.graphs["compiled"]["nodes"] if node["kind"] == "kernel"]


def test_the_report_of_a_network():
    """Kernels in their modules, with their lines, schedules, neighbours, times, passes and memory."""
    model, args = net()
    exe = pipeline.capture(model, args).compile(num_threads=1)
    contents = contents_of(exe, args, {}, 2)
    assert contents.summary["title"] == "Net" and contents.summary["missing"] == []
    assert contents.summary["options"] == {"num_threads": "1"}

    called = {node["kernel"]: node for node in kernels(contents)}
    assert called.keys() == {kernel.name for kernel in exe.kernels}
    residual = called["fused_conv2d_add_relu_add"]
    places = {contents.nodes[name]["path"] for name in residual["origins"]}
    assert places == {"", "second", "second.conv", "second.norm"} and residual["module"] == ""
    assert residual["reads"] and all(name.startswith("prepared") for name in residual["reads"])
    inside = [n["label"] for n in contents.graphs["compiled"]["nodes"] if n["box"] == residual["id"]]
    assert inside == ["conv2d", "fused_add_relu_add"]
    boxes = {box["id"]: box for box in contents.graphs["imported"]["boxes"]}
    assert boxes["@main|first.norm"]["parent"] == "@main|first"

    edges = [edge for edge in contents.edges if edge["to"] == residual["id"]]
    assert {edge["from"] for edge in edges} == {called["fill_1"]["id"], called["fused_conv2d_add_relu"]["id"]}
    assert all(edge["reason"] and edge["change"] for edge in edges)
    assert contents.nodes["relu"] == {"path": "first", "op": "aten.relu", "source": contents.nodes["relu"]["source"]}
    assert {edge["key"] for edge in edges} <= REASONS.keys()
    said = {remark["pass_name"] for remark in contents.remarks if remark["kernel"] == residual["kernel"]}
    assert "tile-and-vectorize" in said

    assert contents.profile["seconds"] > 0 and contents.profile["peak"]["operations"] > 0
    timed = {site["node"] for site in contents.profile["sites"] if site["node"]}
    assert timed == {node["id"] for node in kernels(contents) if node["id"].startswith("m")}
    assert len(contents.profile["events"]) == len(contents.profile["sites"])

    names = [entry["name"] for entry in contents.passes]
    folded = names.index("fold-batch-norm")
    assert str(exe.passes).count(",") + 1 >= len(names) - names.count("")
    assert contents.passes[folded]["seconds"] > 0
    (changed,) = contents.changes[folded]
    assert changed["function"] == "main" and changed["removed"] and changed["added"]
    first, last = contents.passes[folded]["remarks"]
    assert {remark["pass_name"] for remark in contents.remarks[first:last]} == {"fold-batch-norm"}
    assert set(contents.texts) == {"torch", "linalg", "fused", "kernels", "buffers", "loops", "llvm"}
    assert residual["kernel"] in contents.texts["loops"]

    (plan,) = contents.memory["plans"]
    assert plan["total"] <= contents.memory["footprint"]["workspace"]
    assert max(buffer["offset"] + buffer["size"] for buffer in plan["buffers"]) == plan["total"]
    assert {weight["name"] for weight in contents.memory["weights"]} >= {"first.conv.weight", "third.norm.bias"}
    (file,) = [file for file in contents.sources if file.endswith("report_models.py")]
    assert any("torch.relu" in line for line in contents.sources[file]["lines"].values())


def test_branches_and_loops_are_boxes():
    recordings = [pipeline.compile(*make(), num_threads=1).recordings()[0] for make in (branches, rounds)]
    branch, loop = recordings
    kinds = {box.label: box for box in branch.compiled.boxes}
    assert {"if", "then", "else"} <= kinds.keys()
    assert kinds["then"].parent == kinds["else"].parent == kinds["if"].id
    (condition,) = kinds["if"].inputs
    assert next(node for node in branch.compiled.nodes if node.id == condition).label == "reduce_add"
    results = branch.compiled.nodes[-1]
    homes = {node.box for node in branch.compiled.nodes if node.id in results.inputs}
    assert homes == {kinds["then"].id, kinds["else"].id}

    whole, *inside = [node for node in loop.compiled.nodes if node.kind == "kernel"]
    assert inside and {name for node in inside for name in node.origins} == {"mm", "tanh"} <= set(whole.origins)

    product = next(node for node in loop.imported.nodes if node.label == "matmul")
    tanh = next(node for node in loop.imported.nodes if node.label == "tanh")
    assert tanh.inputs == (product.id,) and tanh.id in product.inputs  # from the round before
    assert next(box for box in loop.imported.boxes if box.id == product.box).label == "do"


def test_files_say_what_they_lack(tmp_path):
    """Artifacts have no IR; nothing is measured without arguments, or by code that has no clock."""
    model = torch.nn.Linear(4, 4)
    x = torch.ones(2, 4)
    pipeline.compile(model, (x,)).save(tmp_path / "plain.pipeline")
    loaded = pipeline.load(tmp_path / "plain.pipeline")
    missing = contents_of(loaded, (x.numpy(),), {}, 1).summary["missing"]
    assert any("loaded from a file" in text for text in missing)
    assert any("profile=True" in text for text in missing)
    assert any("arguments of a call" in text for text in contents_of(loaded, (), {}, 1).summary["missing"])
    with pytest.raises(PipelineError, match="cannot be written"):
        loaded.report(tmp_path / "missing" / "report.html")


def test_ops_that_torch_runs():
    def eigenvalues(x):
        return torch.linalg.eigvalsh(torch.relu(x) + 1).exp() * 2

    exe = pipeline.compile(eigenvalues, (torch.eye(3),), fallback="torch")
    contents = contents_of(exe, (torch.eye(3),), {}, 1)
    assert [fallback["op"] for fallback in contents.summary["fallbacks"]] == [exe.fallbacks[0].op]
    assert any("torch runs some ops" in text for text in contents.summary["missing"])
    assert contents.profile is not None


def test_drivers(tmp_path, capsys):
    """Reports by pipeline-compile and pipeline-run, compared by pipeline-report; what is wrong is said in one line."""
    (tmp_path / "net.py").write_text(
        "import torch\n\n\ndef forward(x):\n    return torch.softmax(x.relu(), -1)\n\n\n"
        "def model():\n    return forward, (torch.ones(8, 8),)\n"
    )
    model, page_of = str(tmp_path / "net.py"), {name: str(tmp_path / f"{name}.html") for name in "abc"}
    assert compile_driver.main([model, "-o", str(tmp_path / "net.pipeline"), "--report", page_of["a"]]) == 0
    apart = tmp_path / "apart.yaml"
    apart.write_text("name: apart\n")
    assert run_driver.main([model, "--report", page_of["b"], "--disable", "fuse-elementwise", "--repeats", "1"]) == 0
    capsys.readouterr()
    assert read(page_of["a"])["profile"] is None and read(page_of["b"])["profile"] is not None
    assert report_driver.main(["diff", page_of["a"], page_of["b"], "-o", page_of["c"]]) == 0
    assert capsys.readouterr().out.startswith("kernels: ")
    for argv, message in (
        (["diff", page_of["a"], str(apart), "-o", page_of["c"]], "is no report"),
        (["diff", page_of["a"], str(tmp_path / "none.html"), "-o", page_of["c"]], "cannot be read"),
        (["diff", page_of["a"], page_of["b"], "-o", page_of["a"]], "is one of the reports"),
    ):
        assert report_driver.main(argv) == 1
        said = capsys.readouterr().err
        assert message in said and said.count("\n") == 1
    with pytest.raises(SystemExit):
        compile_driver.main([model, "--emit=llvm", "--report", page_of["a"]])
    assert "--report: is for --emit=exe" in capsys.readouterr().err


def test_text_is_no_markup():
    """What a model is called, or a file says, cannot end the script that it is in."""
    contents = contents_of(pipeline.compile(lambda x: x + 1, (torch.ones(2),)), (), {}, 1)
    contents.summary["title"] = "</script><script>alert(1)</script>"
    text = page(contents)
    assert "alert(1)" not in text.replace("&lt;/script&gt;&lt;script&gt;alert(1)", "")


def test_changes_of_text():
    """Lines that differ in numbers of values alone are equal; long texts are cut, and longer ones not compared."""
    assert change("f", "%a_1 = x %0\nreturn %a_1", "%a_7 = x %3\nreturn %a_7") is None
    found = change("f", "one\ntwo\nthree", "one\n2\nthree")
    assert found.lines == (" one", "-two", "+2", " three") and (found.added, found.removed) == (1, 1)
    cut = change("f", "", "\n".join(map(str, range(900))))
    assert cut.added == 900 and len(cut.lines) + cut.cut == 900
    rewritten = change("f", "a\n" * 2000, "b\n" * 1800)
    assert (rewritten.added, rewritten.removed) == (1800, 2000) and len(rewritten.lines) + rewritten.cut == 3800


def test_modules_as_boxes():
    """Modules lie inside of branches and around them; those with one node, or one module alone, are left out."""
    assert common_path(["a.b.c", "a.b", "a.b.d"]) == "a.b" and common_path([]) == "" and common_path(["a", "b"]) == ""
    known = {name: ModelNode(path) for name, path in {"p": "a.b.c", "q": "a.b.d", "r": "a.b.c", "s": "a.e"}.items()}
    nodes = [GraphNode(name, "op", name, "op", "@main", (name,)) for name in "pqr"]
    graph = with_modules(Graph((GraphBox("@main", "entry", "@main", None),), tuple(nodes)), known)
    boxes = {box.id: (box.label, box.parent) for box in graph.boxes}
    assert boxes == {"@main": ("@main", None), "@main|a.b": ("a.b", "@main"), "@main|a.b.c": ("c", "@main|a.b")}
    assert [node.box for node in graph.nodes] == ["@main|a.b.c", "@main|a.b", "@main|a.b.c"]
    branch = (GraphBox("@main", "entry", "@main", None), GraphBox("if", "if", "if", "@main"))
    inside = [GraphNode(name, "op", name, "op", "if", (name,)) for name in "ps"]
    graph = with_modules(Graph(branch, (*inside, GraphNode("t", "op", "t", "op", "@main", ("s",)))), known)
    assert next(box for box in graph.boxes if box.id == "if").parent == "@main|a"
    assert [node.box for node in graph.nodes] == ["if", "if", "@main|a"]


def test_places_of_what_is_timed():
    """Calls are told by the order in which they come, unless there are more or fewer of them."""
    boxes = (GraphBox("@prepare", "entry", "", None), GraphBox("@main", "entry", "", None))
    calls = [("p1", "@prepare", "k"), ("m1", "@main", "k"), ("m2", "@main", "l"), ("m3", "@main", "k")]
    nodes = [GraphNode(id, "kernel", name, "func.call", box, kernel=name) for id, box, name in calls]
    places = KernelPlaces(Graph(boxes, tuple(nodes)))
    assert places.of_sites(["k", "copy", "k", "l", "l"]) == ["m1", None, "m3", None, None]


def test_comparisons():
    """Kernels of two reports are paired by what they compute and where; times that are about equal are the same."""

    def report(**times):
        sites = [
            {"name": name, "source": "f.py:1", "node": name, "seconds": seconds, "runs": runs}
            for name, (seconds, runs) in times.items()
        ]
        kernel = {"lines": ["f.py:1"], "operations": 1, "kind": "matmul", "calls": 1}
        return {
            "summary": {"title": "N", "target": "t", "options": {}, "made": ""},
            "kernels": [{**kernel, "name": name, "words": name.split("_")[:2]} for name in times],
            "graphs": {"imported": {"nodes": []}, "compiled": {"nodes": [{"id": n, "module": n[0]} for n in times]}},
            "profile": {"seconds": 1.0, "sites": sites},
            "memory": {"footprint": None},
            "passes": [],
        }

    before = report(a=(1.0, 1), b=(1.0, 1), c=(1.0, 1), d_add_1=(1.0, 1), e=(1.0, 1), f=(1.0, 1), x=(1.0, 1))
    after = report(a=(1.01, 1), b=(2, 1), c=(0.5, 1), d_add_2=(1.0, 1), e=(2.0, 2), f_cast=(1.0, 1), y=(3.0, 1))
    found = compare(before, after, ("A", "B"))
    rows = {row["name"]: row for row in found["kernels"]}
    changes = {"a": "same", "b": "slower", "c": "faster", "d_add_2": "same", "e": "same", "f_cast": "same"}
    changes |= {"x": "went", "y": "appeared"}
    assert {name: row["change"] for name, row in rows.items()} == changes
    assert (rows["d_add_2"]["was"], rows["f_cast"]["was"], rows["a"]["was"]) == ("d_add_1", "f", None)
    (line,) = found["lines"]
    assert line["name"] == "f.py:1" and line["seconds"] == pytest.approx([7.0, 10.51])
    assert {row["name"]: row["change"] for row in found["modules"]}["y"] == "slower"
