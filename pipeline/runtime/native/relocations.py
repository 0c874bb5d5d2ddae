"""What object files leave to be filled in, and how code jumps to functions outside: by processor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from pipeline.errors import CompileError
from pipeline.runtime.native.elf import AARCH64, X86_64


class Relocations(ABC):
    """The kinds of relocations of a processor, by ELF's numbers.

    Attributes:
        absolute: an address, of eight bytes.
        of_words: where code takes the address of a symbol from a word that holds it.
        relative, glob_dat: for the loader: the place of the shared object + A; the address of a symbol.
        page: the largest page of memory that systems have.
        jump_bytes: how long a jump to a function outside is.
    """

    absolute: ClassVar[int]
    of_words: ClassVar[tuple[int, ...]]
    relative: ClassVar[int]
    glob_dat: ClassVar[int]
    page: ClassVar[int]
    jump_bytes: ClassVar[int]

    @abstractmethod
    def jump(self, place: int, word: int) -> bytes:
        """The code at `place` that goes on where the address in a word leads."""

    @abstractmethod
    def known(self, kinds: np.ndarray) -> np.ndarray:
        """Which of these kinds `fill_in` knows."""

    @abstractmethod
    def fill_in(self, image: np.ndarray, places: np.ndarray, kinds: np.ndarray, values: np.ndarray) -> None:
        """Fills in what depends on addresses, S + A or that of the word with S; raises `CompileError` if one is far."""


class _X86(Relocations):
    """x86-64: displacements of 32 bits behind the instruction's code."""

    absolute, of_words = 1, (9, 41, 42)  # GOTPCREL, GOTPCRELX, REX_GOTPCRELX
    relative, glob_dat = 8, 6
    page, jump_bytes = 1 << 12, 8

    _narrow, _wide = (2, 4, *of_words), 24  # PC32, PLT32; PC64

    def jump(self, place: int, word: int) -> bytes:
        """See `Relocations.jump`: jmp *word(%rip); nop."""
        return b"\xff\x25" + (word - place - 6).to_bytes(4, "little", signed=True) + b"\x66\x90"

    def known(self, kinds: np.ndarray) -> np.ndarray:
        """See `Relocations.known`."""
        return np.isin(kinds, (*self._narrow, self._wide))

    def fill_in(self, image: np.ndarray, places: np.ndarray, kinds: np.ndarray, values: np.ndarray) -> None:
        """See `Relocations.fill_in`."""
        _store_differences(image, places, values, np.isin(kinds, self._narrow), kinds == self._wide)


class _Aarch64(Relocations):
    """AArch64: pages and places in them, in the fields of instructions (ELF for the Arm 64-bit Architecture)."""

    absolute, of_words = 257, (311, 312)  # ADR_GOT_PAGE, LD64_GOT_LO12_NC
    relative, glob_dat = 1027, 1025
    page, jump_bytes = 1 << 16, 16

    _narrow, _wide = (261, 314), 260  # PREL32, PLT32; PREL64
    _pages = (275, 276, 311)  # ADR_PREL_PG_HI21, and _NC; ADR_GOT_PAGE
    _calls = (282, 283)  # JUMP26, CALL26
    _shifts: ClassVar = {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4, 312: 3}  # ADD, LDST8 to 128, LD64_GOT: LO12

    def jump(self, place: int, word: int) -> bytes:
        """See `Relocations.jump`: adrp x16, word; ldr x17, [x16, #:lo12:word]; br x17; nop."""
        code = np.array([0x90000010, 0xF9400211, 0xD61F0220, 0xD503201F], "<u4").view(np.uint8)
        places, kinds = np.array([0, 4]), np.array([311, 312])
        self._fill(code, places, place + places, kinds, np.array([word, word]))
        return code.tobytes()

    def known(self, kinds: np.ndarray) -> np.ndarray:
        """See `Relocations.known`."""
        return np.isin(kinds, (*self._narrow, self._wide, *self._pages, *self._calls, *self._shifts))

    def fill_in(self, image: np.ndarray, places: np.ndarray, kinds: np.ndarray, values: np.ndarray) -> None:
        """See `Relocations.fill_in`."""
        narrow, wide = np.isin(kinds, self._narrow), kinds == self._wide
        _store_differences(image, places, values, narrow, wide)
        code = ~(narrow | wide)
        self._fill(image, places[code], places[code], kinds[code], values[code])

    def _fill(
        self, image: np.ndarray, places: np.ndarray, addresses: np.ndarray, kinds: np.ndarray, values: np.ndarray
    ) -> None:
        """Fills in fields of instructions that lie at `places` of the image, and will lie at `addresses`."""
        bytes_ = places[:, None] + np.arange(4)
        words = image[bytes_].view("<u4").reshape(-1)
        pages, calls = np.isin(kinds, self._pages), np.isin(kinds, self._calls)
        distance = np.where(pages, (values >> 12) - (addresses >> 12), (values - addresses) >> 2)
        if (np.abs(distance[pages]) >= 1 << 20).any() or (np.abs(distance[calls]) >= 1 << 25).any():
            raise CompileError("the code is larger than 128 MB, or calls further than that")
        shift = np.array([self._shifts.get(kind, 0) for kind in kinds.tolist()], np.int64)
        page = (distance & 3) << 29 | (distance >> 2 & 0x7FFFF) << 5
        field = np.select([pages, calls], [page, distance & 0x3FFFFFF], ((values & 0xFFF) >> shift) << 10)
        image[bytes_] = (words | field.astype("<u4")).view(np.uint8).reshape(-1, 4)


#: By ELF's number of the machine.
RELOCATIONS: dict[int, Relocations] = {X86_64: _X86(), AARCH64: _Aarch64()}


def _store_differences(
    image: np.ndarray, places: np.ndarray, values: np.ndarray, narrow: np.ndarray, wide: np.ndarray
) -> None:
    """Stores values - places in four or eight bytes."""
    relative = (values - places)[narrow]
    if (relative != relative.astype(np.int32)).any():
        raise CompileError("the code is larger than 2 GB")
    image[places[narrow][:, None] + np.arange(4)] = relative.astype("<i4").view(np.uint8).reshape(-1, 4)
    image[places[wide][:, None] + np.arange(8)] = (values - places)[wide].view(np.uint8).reshape(-1, 8)
