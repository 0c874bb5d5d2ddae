"""examples/train_vit.py, smaller: it learns, and as in eager mode."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

sys.path.append(str(Path(__file__).parents[2] / "examples"))  # scripts, not a package

import train_vit


def test_losses_are_those_of_eager(count):
    histories = []
    for backend in ("pipeline", "eager"):
        torch.manual_seed(0)
        histories.append(train_vit.train(train_vit.ViT(16, 1, dropout=0.0, patch=4), backend, 3))
    ours, theirs = histories
    assert ours.losses == pytest.approx(theirs.losses, rel=2e-2)
    assert ours.accuracies == pytest.approx(theirs.accuracies, abs=0.05)
    assert ours.losses[-1] < 0.6 * ours.losses[0] and ours.accuracies[-1] > 0.6
    assert count["backward in eager"] == 0


def test_what_it_prints(monkeypatch, capsys):
    arguments = ["train_vit.py", "--backend", "eager", "--epochs", "1", "--width", "8", "--layers", "1"]
    threads = torch.get_num_threads()
    monkeypatch.setattr(sys, "argv", arguments)
    train_vit.main()
    torch.set_num_threads(threads)
    assert "epoch   1: loss" in capsys.readouterr().out
