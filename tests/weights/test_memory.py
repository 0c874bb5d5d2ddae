"""Memory that weights have left is neither read nor written: its pages are taken away."""

from __future__ import annotations

import subprocess
import sys

import pytest

_PROGRAM = """
import ctypes, mmap, sys, torch, pipeline
from torch import nn

libc = ctypes.CDLL(None)

class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(64))
    def forward(self, x):
        self.total.add_(x)
        return x * self.total

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.linear, self.counting = nn.Embedding(2000, 64), nn.Linear(64, 64), Counting()
    def forward(self, i):
        return self.counting(self.linear(self.table(i).sum(0)))

def placed(tensor):
    "A copy of a tensor in pages of its own, and where these are."
    size = -(-tensor.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    pages = mmap.mmap(-1, size)
    copy = torch.frombuffer(pages, dtype=tensor.dtype, count=tensor.numel()).view(tensor.shape)
    copy.copy_(tensor)
    return copy, (copy.data_ptr(), size)

model, i = Model().eval(), torch.tensor([7, 1999, 0])
places = []
for tensor in [*model.parameters(), *model.buffers()]:
    tensor.data, place = placed(tensor.detach())
    places.append(place)
exe = pipeline.compile(model, (i,), refresh=sys.argv[2])
exe(i)
others = {name: tensor.clone() for name, tensor in model.state_dict().items()}
def set_data():
    for tensor, other in zip([*model.parameters(), *model.buffers()], others.values()):
        tensor.data = other
{
    "share_memory": model.share_memory,
    "to": lambda: model.double().float(),
    "data": set_data,
    "load_state_dict": lambda: model.load_state_dict(others, assign=True),
}[sys.argv[1]]()
if sys.argv[2] == "manual" and sys.argv[1] == "load_state_dict":
    exe.refresh()
if sys.argv[1] != "share_memory":  # which has unmapped the pages
    for address, size in places:
        assert libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), 0) == 0
for _ in range(2):
    twin = Model().eval()
    twin.load_state_dict(model.state_dict())
    torch.testing.assert_close(exe(i), twin(i), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(model.counting.total, twin.counting.total, atol=1e-4, rtol=1e-4)
import os
os._exit(0)  # nobody is to free what cannot be touched
"""


@pytest.mark.parametrize(
    ("move", "refresh"),
    [("share_memory", "auto"), ("data", "auto"), ("load_state_dict", "auto"), ("to", "manual")],
)
def test_pages_that_weights_have_left(move, refresh):
    subprocess.run([sys.executable, "-c", _PROGRAM, move, refresh], check=True, timeout=100)
