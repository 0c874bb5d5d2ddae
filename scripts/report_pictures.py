"""Writes the pictures of docs/report.md anew: the report of a ResNet-18 (examples/resnet18.py) on one thread.

Usage: taskset -c 0 python scripts/report_pictures.py
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "tests" / "report")]

PICTURES = ROOT / "docs" / "pictures"

#: A kernel that adds a residual, in the second stage of the network.
KERNEL = "fused_conv2d_add_add_relu_0"


def main() -> None:
    """Makes the report, opens it and takes the pictures."""
    from browser import browser
    from PIL import Image
    from resnet18 import resnet18

    import pipeline

    def picture(name: str) -> None:
        page.picture(PICTURES / name)
        Image.open(PICTURES / name).quantize(256).save(PICTURES / name, optimize=True)

    model, inputs = resnet18()
    with tempfile.TemporaryDirectory() as folder, browser() as page:
        report = Path(folder) / "report.html"
        pipeline.compile(model, inputs, num_threads=1).report(report, *inputs, repeats=20)
        page.driver.set_window_size(1280, 1000)
        page.open(report)
        page.one("[role=combobox]").send_keys(f"kernel {KERNEL}\n")
        page.waits_for(".details .code", KERNEL)
        page.driver.execute_script("document.activeElement.blur()")
        picture("report-model.png")
        page.scheme("dark")
        page.click("#tab-time")
        picture("report-time.png")


if __name__ == "__main__":
    main()
