"""Two processes with half of each batch, over gloo: the same weights as one process with all of it."""

from __future__ import annotations

import datetime
import faulthandler
import os
import signal
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from torch import nn
from torch._dynamo.utils import counters
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel


class Net(nn.Module):
    """Has weights for two buckets: the first one is of 1 MiB."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.norm = nn.Linear(6, 300), nn.Linear(300, 300), nn.LayerNorm(300)
        self.third, self.last = nn.Linear(300, 300), nn.Linear(300, 4)

    def forward(self, x):
        x = torch.tanh(self.second(F.gelu(self.first(x))))
        return self.last(torch.tanh(self.third(self.norm(x))))


def trained(model, call, batches):
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for x, y in batches:
        optimizer.zero_grad()
        F.cross_entropy(call(x), y).backward()
        optimizer.step()
    return model.state_dict()


def batches():
    drawn = torch.Generator().manual_seed(1)
    return [(torch.randn(6, 6, generator=drawn).double(), torch.randint(0, 4, (6,), generator=drawn)) for _ in range(3)]


def net():
    torch.manual_seed(0)
    return Net().double()


def work(rank, folder):
    """Compiles what DistributedDataParallel makes, then a model that is given to it."""
    with open(folder / f"stacks {rank}", "w") as stacks:
        faulthandler.register(signal.SIGUSR1, stacks)
        torch.set_num_threads(1)
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"  # the two meet on this machine, whatever its name stands for
        meeting = {"init_method": f"file://{folder}/store", "timeout": datetime.timedelta(seconds=60)}
        dist.init_process_group("gloo", rank=rank, world_size=2, **meeting)
        mine = [(x[rank::2], y[rank::2]) for x, y in batches()]
        alone, around, inside, seen = net(), net(), net(), []
        expected = trained(alone, alone, batches())
        around.last.weight.register_hook(lambda gradient: seen.append(gradient.shape))
        compiled = torch.compile(DistributedDataParallel(around, bucket_cap_mb=1), backend="pipeline")
        torch.testing.assert_close(trained(around, compiled, mine), expected)
        assert len(seen) == 3 and counters["pipeline"]["graphs"] > 1  # one for each bucket
        inside.compile(backend="pipeline")
        torch.testing.assert_close(trained(inside, DistributedDataParallel(inside, bucket_cap_mb=1), mine), expected)
        assert counters["pipeline"]["backward in eager"] == 0
        dist.barrier()
        print("done", file=stacks, flush=True)
        # What is left would now be taken apart, in which torch 2.13 may hang or abort, without a compiler as well: the
        # reducer joins gloo's thread and holds the GIL, for which that thread waits to drop the context of a backward.
        os._exit(0)


def test_weights_are_those_of_one_process(tmp_path):
    hanging = stacks_of_hanging_processes(tmp_path)
    assert not hanging, hanging


def stacks_of_hanging_processes(folder):
    """Where the two processes are that do not end, which they do by it; empty if they ended by themselves."""
    both, deadline = processes.spawn(work, (folder,), nprocs=2, join=False), time.monotonic() + 130
    while not both.join(timeout=1):
        if time.monotonic() > deadline:
            for signal_number in (signal.SIGUSR1, signal.SIGKILL):
                for child in filter(lambda child: child.is_alive(), both.processes):
                    os.kill(child.pid, signal_number)
                time.sleep(1)
            return "\n".join(f"{file.name}:\n{file.read_text()}" for file in sorted(folder.glob("stacks *")))
    return ""
