"""How much memory steps of training take, beside eager's: `python training_memory.py [WORKLOAD..]`, as Markdown.

Each figure is a process of its own: forward and backward, no optimizer, one thread. The peak is that of one step, above
the model as it was made: gradients and what is kept between steps are in it. Compiling is apart: a first process fills
a disk cache, a second one takes the code from there; by how much more the first one holds is what compiling leaves.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile

from contestant_process import resident, with_growth
from report import markdown
from training_workloads import TRAINING, Parameters

_USUAL = ("T1_bert", "T4_vit_s", "T5_resnet18_64", "T7_mobilenetv2", "T8_unet", "T9_convnext", "T11_mlp")


def measured(name: str, compiled: bool) -> dict[str, float]:
    """In MB: what is held between two steps, and the peak of a step, above what is there before the first."""
    import torch

    torch.set_num_threads(1)
    model, inputs = TRAINING[name].make()
    if isinstance(model, Parameters):
        raise SystemExit(f"{name}: an optimizer alone")
    call = torch.compile(model, backend="pipeline", options={"num_threads": 1}) if compiled else model

    def step() -> None:
        model.zero_grad()
        call(*inputs).backward()

    empty = resident()
    for _ in range(2):
        step()
    held = resident() - empty
    _, growth = with_growth(step)
    return {"held": held, "peak": held + growth}


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", default=_USUAL, metavar="WORKLOAD", help=", ".join(TRAINING))
    parser.add_argument("--measure", choices=["eager", "pipeline"], help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.measure is not None:
        print(json.dumps(measured(chosen.workloads[0], chosen.measure == "pipeline")))
        return
    rows = []
    for name in chosen.workloads:
        with tempfile.TemporaryDirectory() as cache:
            eager, first, second = (_process(name, who, cache) for who in ("eager", "pipeline", "pipeline"))
        peaks = [eager["peak"], second["peak"], second["peak"] / eager["peak"]]
        rows.append(
            [name, *map("{:.0f}".format, peaks[:2]), f"{peaks[2]:.2f}", f"{first['held'] - second['held']:.0f}"]
        )
    print(markdown(["workload", "eager MB", "pipeline MB", "ratio", "compiling leaves MB"], rows))


def _process(name: str, who: str, cache: str) -> dict[str, float]:
    settings = {"PIPELINE_CACHE_DIR": cache, "PIPELINE_CACHE_SIZE": "1G", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--measure", who, name]
    done = subprocess.run(command, env={**os.environ, **settings}, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    main()
