"""torch.linalg on complex tensors: compiled, run by torch, or refused by one error."""

from __future__ import annotations

import pytest
import torch
from complex_support import compiled
from torch import linalg

import pipeline


def random(*shape):
    return torch.randn(*shape, dtype=torch.complex64, generator=torch.Generator().manual_seed(0))


def by_torch(z):
    return linalg.inv(z), linalg.solve(z, z + 1), linalg.det(z), linalg.matrix_norm(z, "nuc"), linalg.norm(z, 1)


def test_norms_are_compiled():
    def program(z):
        return linalg.norm(z), linalg.vector_norm(z, 3, dim=0), linalg.matrix_norm(z), linalg.vector_norm(z, torch.inf)

    z = random(5, 4)
    executable = compiled(program, z, fallback="error")
    torch.testing.assert_close(executable(z), program(z))


def test_what_has_no_rule_is_run_by_torch():
    z = random(4, 4)
    executable = compiled(by_torch, z, fallback="torch")
    assert {one.op for one in executable.fallbacks} >= {"aten.linalg_inv_ex", "aten._linalg_solve_ex"}
    torch.testing.assert_close(executable(z), by_torch(z), rtol=1e-4, atol=1e-4)


def test_without_torch_it_is_one_error():
    with pytest.raises(pipeline.UnsupportedOpError) as raised:
        compiled(by_torch, random(4, 4), fallback="error")
    for name in ("linalg_inv_ex", "_linalg_solve_ex", "_linalg_det", "_linalg_svd", "linalg_norm"):
        assert name in str(raised.value)
