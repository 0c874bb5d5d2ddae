"""Kernels on tensors → functions of a thread, and a host program that launches them.

The stages are flat lists of passes, to be read from top to bottom.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.mlir import ir, run_pipeline
from pipeline.passmanager.pass_pipeline import PassPipeline

#: No deallocations: the plan knows by itself when a buffer is needed last. No cse in front: fills and scratch that are
#: equal would become one, and then copies.
BUFFERIZE = """
    canonicalize,
    one-shot-bufferize{
      bufferize-function-boundaries=1
      allow-return-allocs-from-loops=1
      function-boundary-type-conversion=identity-layout-map
    },
    reallocate-strided-casts,
    canonicalize,
    drop-equivalent-buffer-results,
    canonicalize,
    cse,
    func.func(linalg-generalize-named-ops)
"""

#: One function for each launch; what is left of @main is the host's part.
SPLIT = "outline-dispatches, canonicalize, cse, symbol-dce"

#: The dispatches alone, as functions of a thread on flat buffers.
TO_THREADS = """
    keep-dispatches,
    {mapping},
    func.func(convert-linalg-to-loops),
    fold-memref-alias-ops,
    func.func(affine-expand-index-ops),
    lower-affine,
    canonicalize,
    cse,
    fold-memref-alias-ops,
    flatten-buffers,
    loop-invariant-code-motion,
    canonicalize,
    cse
"""


@dataclass(frozen=True)
class Stages:
    """What differs between targets.

    Attributes:
        blocks: passes on kernels on tensors: which of them are blocks of threads as a whole.
        mapping: the pass map-to-threads with its options.
        libraries: passes on buffers that choose what libraries compute; empty where there are none.
    """

    blocks: str = "tile-groups-to-blocks"
    mapping: str = "map-to-threads"
    libraries: str = ""


@dataclass(frozen=True)
class Lowered:
    """A module for the host, in which dispatches are declarations, and one for the device, which has them."""

    host: ir.Module
    device: ir.Module


def lower(module: ir.Module, stages: Stages, disable: frozenset[str]) -> Lowered:
    """Buffers, dispatches, threads. `module` has @main, @prepare and kernels on tensors, results as arguments."""
    PassPipeline.parse(stages.blocks).run(module, disable=disable)
    PassPipeline.parse(BUFFERIZE).run(module, disable=disable)
    if stages.libraries:
        PassPipeline.parse(stages.libraries).run(module, disable=disable)
    PassPipeline.parse(SPLIT).run(module, disable=disable)
    device = ir.Module.create()
    for op in module.body.operations:
        device.body.append(op.operation.clone())
    PassPipeline.parse(TO_THREADS.format(mapping=stages.mapping)).run(device, disable=disable)
    run_pipeline(module.operation, "builtin.module(lower-affine, canonicalize, cse)")
    return Lowered(module, device)
