"""What works writes nothing to the terminal: no warnings of torch's about torch, no logs, no graphs."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

PROGRAM = """
    import torch
    from torch import nn
    import pipeline

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.gru = nn.LSTM(3, 4), nn.GRU(3, 4, bidirectional=True)

        def forward(self, x):
            return self.lstm(x), self.gru(x)

    steps, image = torch.randn(5, 2, 3), torch.randn(1, 3, 8, 8)
    vision = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).eval()
    pipeline.compile(Recurrent(), (steps,))(steps)
    pipeline.compile(vision, (image,), dynamic_shapes=({2: torch.export.Dim.AUTO, 3: torch.export.Dim.AUTO},))(image)
    compiled = torch.compile(vision, backend="pipeline")
    compiled(image)
    with torch.no_grad():
        compiled(torch.randn(2, 3, 9, 8))
        torch.compile(lambda x: torch.linalg.svdvals(x) * 2, backend="pipeline")(torch.randn(3, 3))
"""

REFUSED = """
    import torch
    import pipeline

    def branches_on_values(x):
        return x.exp() if bool((x > 0).all()) else x

    try:
        pipeline.compile(branches_on_values, (torch.randn(3),))
    except pipeline.CaptureError:
        print("refused")
"""


@pytest.mark.parametrize("program, said", [(PROGRAM, ""), (REFUSED, "refused\n")])
def test_nothing_is_written(program, said):
    """Neither as it works, nor where torch has pages to say about what it cannot capture: errors have a message."""
    environment = {**os.environ, "PIPELINE_FALLBACK": "torch"}
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")


MODEL = """
    import sys
    import torch
    import torchao  # which says, and has torch say, what of it is deprecated and cannot be loaded
    from torch import nn

    print("of the user", file=sys.stderr)

    def model():
        return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).eval(), (torch.randn(1, 3, 8, 8),)
"""


def test_drivers_say_what_the_user_says(tmp_path):
    (tmp_path / "net.py").write_text(textwrap.dedent(MODEL))
    command = [sys.executable, "-m", "pipeline.tools.run", tmp_path / "net.py", "--benchmark", "--against=eager"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stderr) == (0, "of the user\n")
