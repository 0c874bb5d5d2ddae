"""The loops of a linalg op: how operands are read in them, which are reductions, and what follows from that alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pipeline.ir.indexing_maps import is_permutation, loop_of, moves
from pipeline.mlir import ir, remembered


@dataclass(frozen=True)
class IterationSpace:
    """Loops. Those of ops with the same attributes are one object while a pipeline runs.

    Attributes:
        maps: from loops to the indices of each operand, inputs first.
        reductions: which loops are reductions.
    """

    maps: tuple[ir.AffineMap, ...]
    reductions: tuple[bool, ...]

    @cached_property
    def has_reductions(self) -> bool:
        """Whether one loop is a reduction."""
        return any(self.reductions)

    @cached_property
    def permutations(self) -> tuple[bool, ...]:
        """For each operand whether its indices are the loops, in some order."""
        return tuple(map(is_permutation, self.maps))

    @cached_property
    def bounds(self) -> dict[int, tuple[int, int]]:
        """For each loop an (operand, dim) that it runs along; without loops that are bounded by no dim alone."""
        found: dict[int, tuple[int, int]] = {}
        for operand, indexing in enumerate(self.maps):
            for dim, expression in enumerate(indexing.results):
                if (loop := loop_of(expression)) is not None:
                    found.setdefault(loop, (operand, dim))
        return {loop: found[loop] for loop in range(len(self.reductions)) if loop in found}

    def moves(self, operand: int, loop: int) -> str:
        """How an operand moves with a loop, in the words of `indexing_maps.moves`."""
        found = self._moves.get((operand, loop))
        if found is None:
            found = self._moves[operand, loop] = moves(self.maps[operand], loop)
        return found

    @cached_property
    def _moves(self) -> dict[tuple[int, int], str]:
        """What `moves` has found: emitters ask for every vector of a tile."""
        return {}


@remembered
def iteration_space(indexing_maps: ir.ArrayAttr, iterator_types: ir.ArrayAttr) -> IterationSpace:
    """The loops of a linalg.generic by its attributes."""
    maps = tuple(ir.AffineMapAttr(attribute).value for attribute in indexing_maps)
    kinds = str(iterator_types).split(",") if maps[0].n_dims else []  # one call for all of them
    return IterationSpace(maps, tuple("reduction" in kind for kind in kinds))
