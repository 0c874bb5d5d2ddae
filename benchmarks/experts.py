"""Times layers of experts against PyTorch, on one thread.

Usage: taskset -c 1 python benchmarks/experts.py [--write]

A layer is two products with the matrices of the experts that tokens are sent to, around a gate: `F.grouped_mm` in bf16,
a loop over experts in float32. The least times of many calls, of both by turns. `--write` puts the table into
docs/performance.md.
"""

from __future__ import annotations

import sys

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transposed_convs import least, show, write

START, END = "<!-- experts: benchmarks/experts.py --write -->", "<!-- end of experts -->"

HEADER = ("layer of experts", "tokens x experts of each", "PyTorch (ms)", "pipeline (ms)", "times as fast")

#: (experts, features, features inside) of layers, and (tokens, experts of each) that are sent there.
LAYERS = ((64, 1024, 704), (8, 1024, 2048))
SENT = ((1, 8), (64, 8), (512, 8))


class Experts(nn.Module):
    """Rows, in the order of their experts, and where those of each expert end → rows."""

    def __init__(self, experts: int, features: int, inner: int, dtype: torch.dtype):
        super().__init__()
        self.up = nn.Parameter(torch.randn(experts, 2 * inner, features).to(dtype) / 32, requires_grad=False)
        self.down = nn.Parameter(torch.randn(experts, features, inner).to(dtype) / 32, requires_grad=False)

    def forward(self, x: Tensor, ends: Tensor) -> Tensor:
        """The layer in bf16."""
        gate, up = F.grouped_mm(x, self.up.mT, offs=ends).chunk(2, -1)
        return F.grouped_mm(F.silu(gate) * up, self.down.mT, offs=ends)

    def one_by_one(self, x: Tensor, ends: Tensor) -> Tensor:
        """The same, expert by expert."""
        results, start = [], 0
        for expert, end in enumerate(ends.tolist()):
            gate, up = (x[start:end] @ self.up[expert].T).chunk(2, -1)
            results.append((F.silu(gate) * up) @ self.down[expert].T)
            start = end
        return torch.cat(results)


class InFloat32(Experts):
    """The layer with products that are in float32, which `F.grouped_mm` does not trace."""

    def forward(self, x: Tensor, ends: Tensor) -> Tensor:
        gate, up = torch.ops.pipeline.grouped_product(x, self.up, ends).chunk(2, -1)
        return torch.ops.pipeline.grouped_product(F.silu(gate) * up, self.down, ends)


def row(layer: tuple[int, int, int], sent: tuple[int, int], dtype: torch.dtype) -> tuple[str, ...]:
    """A row of the table."""
    torch.manual_seed(0)
    torch.compiler.reset()
    experts, features, inner = layer
    rows = sent[0] * min(sent[1], experts)
    x = torch.randn(rows, features).to(dtype)
    ends = torch.bincount(torch.randint(experts, (rows,)), minlength=experts).cumsum(0).int()
    is_float = dtype == torch.float32
    model = (InFloat32 if is_float else Experts)(experts, features, inner, dtype).eval()
    compiled = torch.compile(model, backend="pipeline", options={"num_threads": 1, "fallback": "error"})
    eager = model.one_by_one if is_float else model
    torch.testing.assert_close(compiled(x, ends), eager(x, ends), rtol=0.03, atol=0.03)
    theirs, ours = least(lambda: eager(x, ends), lambda: compiled(x, ends))
    name = f"{experts} of {features} x {inner}, {str(dtype).removeprefix('torch.')}"
    return name, f"{sent[0]} x {rows // sent[0]}", f"{theirs:.3g}", f"{ours:.3g}", f"**{theirs / ours:.2f}**"


@torch.no_grad()
def main(arguments: list[str]) -> None:
    """Prints the table."""
    torch.set_num_threads(1)
    dtypes = (torch.float32, torch.bfloat16)
    rows = [row(layer, sent, dtype) for dtype in dtypes for layer in LAYERS for sent in SENT]
    show(HEADER, rows)
    if "--write" in arguments:
        write(HEADER, rows, START, END)


if __name__ == "__main__":
    main(sys.argv[1:])
