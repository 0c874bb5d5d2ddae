"""Fixtures of the tests of fusion."""

from __future__ import annotations

import pytest
from fusion.shared_library import write_library
from fusion.user_functions import ADD_RELU, GEMM


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A folder with two libraries of C functions."""
    folder = tmp_path_factory.mktemp("libraries")
    write_library(folder / "add_relu.so", ADD_RELU, "add_relu")
    write_library(folder / "gemm.so", GEMM, "gemm")
    return folder
