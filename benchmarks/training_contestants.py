"""Who trains: PyTorch itself, this project, Inductor; a call is a step: forward, backward and AdamW's.

The rate is so small that a call computes what the one before it did, whoever has made how many.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contestants import CONTESTANTS, Contestant, Inductor, Job, Run

if TYPE_CHECKING:
    import numpy as np

RATE = 1e-12


class Trainer(Contestant):
    """PyTorch, op by op, with its fused optimizer.

    Attributes:
        fused: whether the optimizer is torch's fused one, which cannot be compiled.
    """

    runs_python = True
    fused = True
    trains = True

    def compiled(self, function: Any, job: Job) -> Callable[..., Any]:
        """A model or a step of an optimizer as this contestant runs it."""
        return function

    def build(self, captured: Any, job: Job) -> Run:
        import torch
        from training_workloads import Parameters, outcome

        self._outcome = lambda loss: outcome(captured, loss)
        fused = {"fused": True} if self.fused else {"foreach": True}
        optimizer = torch.optim.AdamW(captured.parameters(), lr=RATE, **fused)
        step, zero = self.compiled(optimizer.step, job), torch.zeros(())
        model = None if isinstance(captured, Parameters) else self.compiled(captured, job)

        def run() -> torch.Tensor:
            if model is None:
                step()
                return zero
            optimizer.zero_grad()
            loss = model(*job.inputs)
            loss.backward()
            step()
            return loss

        for _ in range(2):  # the first step of an optimizer makes its state
            run()
        return run

    def arrays(self, result: Any) -> list[np.ndarray]:
        """The loss and the norm of the gradients."""
        return [one.numpy() for one in self._outcome(result)]


class PipelineTrainer(Trainer):
    """This project, through torch.compile."""

    packages, modules, fused = CONTESTANTS["pipeline"].packages, CONTESTANTS["pipeline"].modules, False

    def settings(self, own: Path, common: Path) -> dict[str, str]:
        return {"PIPELINE_CACHE_SIZE": "0"}

    def compiled(self, function: Any, job: Job) -> Callable[..., Any]:
        import torch

        return torch.compile(function, backend="pipeline", options={"num_threads": job.threads})


class InductorTrainer(Trainer):
    """torch.compile. C++ headers are compiled once for all workloads."""

    modules, fused = Inductor.modules, False

    def settings(self, own: Path, common: Path) -> dict[str, str]:
        settings = CONTESTANTS["inductor"].settings(own, common)
        return {name: value for name, value in settings.items() if name != "TORCHINDUCTOR_FREEZING"}

    def compiled(self, function: Any, job: Job) -> Callable[..., Any]:
        import torch

        return torch.compile(function)


TRAINERS: dict[str, Contestant] = {
    "eager": Trainer(),
    "pipeline": PipelineTrainer(),
    "inductor": InductorTrainer(),
}
