"""The private layout that watched words rely on is found, or said not to be."""

from __future__ import annotations

import ctypes

import pytest
import torch
from torch import nn

from pipeline.runtime.weights import torch_layout
from pipeline.runtime.weights.torch_layout import calibrated, dict_tag
from pipeline.runtime.weights.watched_words import WatchedWords


def word(address):
    return ctypes.c_int64.from_address(address).value


def test_words_say_where_a_tensor_lies_and_how_often_it_was_written_to():
    layout = torch_layout.torch_layout()
    assert layout is not None
    for tensor in (torch.zeros(5), nn.Parameter(torch.ones(3, 4)), torch.ones(4, 4, dtype=torch.bool)[2:].t()):
        storage = tensor.untyped_storage()
        assert word(layout.storage_word(tensor)) == storage._cdata
        assert word(layout.data_word(tensor)) == storage.data_ptr()
        before = tensor._version
        torch.autograd.graph.increment_version(tensor)
        assert word(layout.version_word(tensor)) % 2**32 == tensor._version == before + 1
        tensor.untyped_storage().share_memory_()
        assert word(layout.data_word(tensor)) == tensor.untyped_storage().data_ptr() != 0
        tensor.data = tensor.detach().clone()
        assert word(layout.storage_word(tensor)) == tensor.untyped_storage()._cdata
    with torch.inference_mode():
        assert layout.version_word(torch.zeros(3)) is None


def test_the_tag_of_a_dictionary():
    tag = dict_tag()
    assert tag is not None
    holder = {"weight": 1}
    seen = [word(id(holder) + tag)]
    for write in (lambda: holder.update(weight=2), lambda: holder.update(bias=3), lambda: holder.pop("bias")):
        write()
        seen.append(word(id(holder) + tag))
    assert len(set(seen)) == 4
    assert holder.get("weight") == 2 and word(id(holder) + tag) == seen[-1]


class Elsewhere:
    """A tensor of a torch whose structures have none of the words that are looked for."""

    _version = 77

    def __init__(self):
        self._memory = (ctypes.c_int64 * 64)()
        self._cdata = ctypes.addressof(self._memory)

    def untyped_storage(self):
        return self

    def data_ptr(self):
        return 12345


def test_another_layout_is_not_taken_for_this_one():
    assert calibrated([Elsewhere(), Elsewhere()]) is None
    same = [torch.zeros(3), torch.zeros(3)]
    assert calibrated(same) is None, "memory of torch's own and a version of 0 tell nothing"


def test_a_look_where_no_memory_is():
    assert torch_layout.peek(8, 2) == []
    assert torch_layout.peek(2**64 - 8, 1) == []


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_watched_words_expect_what_is_there(count):
    memory = (ctypes.c_int64 * 8)(*range(8))
    addresses = [ctypes.addressof(memory) + 8 * number for number in range(count)]
    words = WatchedWords([*addresses, *addresses])
    record = (ctypes.c_int64 * (1 + 2 * count)).from_address(words.record)
    assert record[0] == count and list(record[1::2]) == addresses and list(record[2::2]) == list(range(count))
    if count:
        memory[count - 1] = 99
        words.accept(addresses[-1:])
        assert record[2 * count] == 99
