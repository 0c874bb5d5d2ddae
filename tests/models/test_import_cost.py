"""Weights are arguments of the program: importing a model costs neither time nor memory for their elements."""

from __future__ import annotations

import json
import subprocess
import sys

LAYERS = 25
WIDTH = 2048

MEASURE = f"""
import gc, json, os, threading, time
import torch
from torch import nn
from pipeline.frontend.capture.capture import capture
from pipeline.frontend.importer.exported_program import read_exported
from pipeline.frontend.capture.call_parameters import parameters_of


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Peak(threading.Thread):
    # The largest resident size while it runs, in bytes.
    def __init__(self):
        super().__init__(daemon=True)
        self.bytes, self.running = resident(), True

    def run(self):
        while self.running:
            self.bytes = max(self.bytes, resident())
            time.sleep(0.005)


def model(width):
    layers = [layer for _ in range({LAYERS}) for layer in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(*layers).eval()


def compiled(model, width):
    args = (torch.ones(1, width),)
    exported = capture(model, args)
    return read_exported(exported, parameters_of(model, args, {{}}, exported)).program(lambda stage, module: None)


compiled(model(8), 8)  # imports modules and fills caches
big, x = model({WIDTH}), torch.ones(1, {WIDTH})
with torch.no_grad():
    start = time.process_time()
    torch.export.export(big, (x,), strict=False)
    export = time.process_time() - start
gc.collect()
before, peak = resident(), Peak()
peak.start()
start = time.process_time()
program = compiled(big, {WIDTH})
whole = time.process_time() - start
peak.running = False
peak.join()
print(json.dumps({{
    "parameters": sum(parameter.numel() for parameter in big.parameters()),
    "shared": all(program.weights[name] is tensor for name, tensor in big.named_parameters()),
    "seconds": whole - export,
    "bytes": peak.bytes - before,
}}))
"""


def test_105_million_parameters_import_in_seconds_and_share_the_models_memory() -> None:
    """CPU seconds beyond torch.export's own, and the peak of resident memory above the live model."""
    measured = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=False)
    assert measured.returncode == 0, measured.stderr
    cost = json.loads(measured.stdout.splitlines()[-1])
    assert cost["parameters"] > 104_000_000
    assert cost["seconds"] <= 3
    assert cost["bytes"] <= 300e6
    assert cost["shared"]
