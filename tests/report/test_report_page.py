"""The pages in a browser: clicks, keys, search, light and dark, and nothing in the console."""

from __future__ import annotations

from browser import browser
from report_models import branches, net, rounds
from selenium.webdriver.common.keys import Keys

import pipeline
from pipeline.report.comparison import compare
from pipeline.report.page import comparison_page, read, write_page

RESIDUAL = "fused_conv2d_add_relu_add"


def test_the_pages(tmp_path, subtests):
    """One browser looks at everything: it takes longer to start than to do all of this."""
    paths = {make.__name__: tmp_path / f"{make.__name__}.html" for make in (net, branches, rounds)}
    for make in (net, branches, rounds):
        model, args = make()
        exe = pipeline.compile(model, args, num_threads=1)
        exe.report(paths[make.__name__], *args, repeats=1)
    exe.save(tmp_path / "rounds.pipeline")
    pipeline.load(tmp_path / "rounds.pipeline").report(tmp_path / "file.html")
    comparison = compare(read(paths["net"]), read(paths["branches"]), ("net", "branches"))
    write_page(tmp_path / "diff.html", comparison_page("net → branches", comparison))
    with browser() as page:
        for look in (_the_graph, _details, _search, _keys, _time, _passes, _memory_and_source, _light_and_dark):
            with subtests.test(look.__name__):
                page.open(paths["net"])
                look(page)
                assert page.complaints() == []
        for look, path in (
            (_a_branch, paths["branches"]),
            (_a_loop, paths["rounds"]),
            (_a_comparison, tmp_path / "diff.html"),
            (_a_file, tmp_path / "file.html"),
        ):
            with subtests.test(look.__name__):
                page.open(path)
                look(page)
                assert page.complaints() == []


def _the_graph(page):
    """As fused, with the ops in their groups; as imported, in modules that open and close."""
    assert page.text("h1") == "Net"
    assert {"@main", "@prepare", "first: Block", RESIDUAL, "conv2d", "x", "results"} <= page.nodes()
    page.click("#stage-imported")
    assert page.one("#stage-imported").get_attribute("aria-checked") == "true"
    assert "norm: BatchNorm2d" in page.nodes() and RESIDUAL not in page.nodes()
    page.click("button", "Close all")
    assert "norm: BatchNorm2d" not in page.nodes()
    page.click("#stage-compiled")
    page.click("button", "Close all")
    assert RESIDUAL in page.nodes() and "conv2d" not in page.nodes()


def _details(page):
    """A kernel has its lines, its tile, what it is not fused with and why, its IR and the passes that made it."""
    page.click("button", "Close all")
    page.click(f'[aria-label^="{RESIDUAL}"]')
    assert page.text(".details h2") == RESIDUAL
    titles = [heading.text for heading in page.all(".details h3")]
    assert titles[:5] == ["Lines of the model", "Came from", "Chosen for it", "Not fused with", "Reads and feeds"]
    page.waits_for(".details code.line", "x = x + self.second(x)")
    page.waits_for(".edge-why", "To change it: ")
    page.waits_for(".details .code", f"func.func private @{RESIDUAL}")
    page.click(".details [role=tab]", "LLVM")
    page.waits_for(".details .code", "llvm.func")
    page.click(".way .link", "tile-and-vectorize")
    page.waits_for(".pass-content h2", "tile-and-vectorize")
    page.waits_for(".pass-content .diff", "vector.")
    page.click("#tab-model")
    page.click(".edge-why .link")
    assert page.text(".details h2") != RESIDUAL


def _search(page):
    """Names of kernels, ops, modules, lines and passes lead to them."""
    for words, view, there in (
        ("kernel add_relu_add", ".details h2", RESIDUAL),
        ("op second.norm mul", ".details h2", "mul"),
        ("line report_models.py:17", ".source .selected", "torch.relu"),
        ("pass fold-batch", ".pass-content h2", "fold-batch-norm"),
    ):
        page.driver.execute_script("document.activeElement.blur()")
        page.one("body").send_keys("/")
        page.keys(words)
        assert page.all("#found [role=option]"), words
        page.keys(Keys.ENTER)
        page.waits_for(view, there)
    page.one("[role=combobox]").send_keys("no such thing")
    page.waits_for("#found", "Nothing has that name.")
    page.keys(Keys.ESCAPE)


def _keys(page):
    """Everything can be reached without a mouse."""
    page.one("body").send_keys(Keys.TAB)
    ring = set()
    for _ in range(12):
        element = page.driver.switch_to.active_element
        ring.add(element.get_attribute("id") or element.get_attribute("aria-label"))
        page.keys(Keys.TAB)
    assert {"search", "tab-model", "stage-imported", "zoom in"} <= ring
    page.one("#tab-model").send_keys(Keys.ARROW_RIGHT)
    assert page.driver.switch_to.active_element.get_attribute("id") == "tab-time"
    page.keys(Keys.ARROW_LEFT)
    page.one('[aria-label^="x, "]').send_keys(Keys.ENTER)
    assert page.text(".details h2") == "x"
    page.keys(Keys.ARROW_DOWN)
    assert page.driver.switch_to.active_element.get_attribute("aria-label") == "first: Block"
    page.keys(Keys.SPACE)
    assert "conv: Conv2d" not in page.nodes()
    page.keys(Keys.SPACE)
    assert "conv: Conv2d" in page.nodes()
    page.keys(Keys.ESCAPE)
    assert not page.one(".details").is_displayed()


def _time(page):
    page.click("#tab-time")
    page.waits_for("h2", "A call takes")
    assert len(page.all(".dot")) >= 4 and page.all(".timeline .run") and page.all(".roof")
    first = _rows(page, ".view > section tbody tr")
    page.click(".view > section th button", "kernel")
    again = _rows(page, ".view > section tbody tr")
    assert sorted(first) == sorted(again) and first != again
    page.waits_for("td", "first Block")
    page.click("tr.choice", RESIDUAL)
    assert page.text(".details h2") == RESIDUAL


def _passes(page):
    page.click("#tab-passes")
    page.waits_for(".pass-content .code", "torch.aten.convolution")
    page.click(".pass-content [role=tab]", "fused")
    page.waits_for(".pass-content .code", "fusion.group")
    shown = len(page.all(".pass"))
    page.click(".pass", "fold-batch-norm")
    page.waits_for(".pass-content", "folded 4 operations per element into the weights of conv2d")
    assert page.all(".d-added") and page.all(".d-removed")
    page.click(".pass-content .link", "next")
    assert page.text(".pass-content h2") != "fold-batch-norm"
    page.click("input[type=checkbox]")
    assert len(page.all(".pass")) > shown


def _memory_and_source(page):
    page.click("#tab-memory")
    assert page.all(".buffer")
    assert all(text in page.text(".view") for text in ("first.conv.weight", "Who holds the peak", "prepared 0"))
    page.click("#tab-source")
    page.click(".source .known", "torch.relu")
    page.waits_for(".source-side", RESIDUAL)
    page.click(".source-side .link", RESIDUAL)
    assert page.text(".details h2") == RESIDUAL


def _light_and_dark(page):
    page.scheme("dark")
    dark = page.colours()
    page.scheme("light")
    assert page.colours() != dark
    assert all(sum(int(part) for part in colour[4:-1].split(",")) < 150 for colour in (dark[0], page.colours()[1]))


def _a_branch(page):
    assert {"if", "then", "else", "fused_matmul_add_relu"} <= page.nodes()
    boxes = {box.get_attribute("aria-label"): box for box in page.all(".box .title")}
    boxes["if"].send_keys(Keys.SPACE)
    assert "fused_matmul_add_relu" not in page.nodes()


def _a_loop(page):
    assert any(name.startswith("loop_") for name in page.nodes())
    page.click("#stage-imported")
    assert {"while", "do", "matmul", "tanh"} <= page.nodes()


def _a_file(page):
    """What is not there is said, in every view."""
    page.waits_for(".missing", "it was loaded from a file")
    page.waits_for(".missing", "give report() the arguments of a call")
    for view in ("time", "passes", "memory", "source", "about", "model"):
        page.click(f"#tab-{view}")
    page.waits_for("td", "loop_")


def _a_comparison(page):
    assert page.text("h1") == "net → branches"
    assert "num_threads=1" in page.text(".sides")
    rows = _rows(page, ".view > section:nth-of-type(2) tbody tr")
    assert any(RESIDUAL in row and "went" in row for row in rows)
    assert any("fused_matmul_add_relu" in row and "appeared" in row for row in rows)
    page.click("th button", "change")
    again = _rows(page, ".view > section:nth-of-type(2) tbody tr")
    assert sorted(again) == sorted(rows) and "appeared" in again[0]


def _rows(page, selector):
    return [row.text for row in page.all(selector)]
