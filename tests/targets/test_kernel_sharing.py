"""Which kernels of a module are known, kept, declared and told of; see test_shared_kernels.py for models."""

from __future__ import annotations

import pytest

from pipeline.mlir import calls_of, context, parse, symbol_name, walk
from pipeline.remarks import collect
from pipeline.targets.cpu.shared_kernels.kernel_code import KernelCode, PortableRemark
from pipeline.targets.cpu.shared_kernels.kernel_text import shareable_kernels
from pipeline.targets.cpu.shared_kernels.sharing import KernelSharing

KERNEL = """
func.func private @{name}(%x: memref<4xf32>) attributes {{pipeline.kernel = "{kind}"}} {{
  %one = arith.constant {value} : f32
  linalg.fill ins(%one : f32) outs(%x : memref<4xf32>)
  {more}
  return
}}
"""


def module_of(*kernels, calls):
    """A module on buffers, whose @main makes these calls."""
    text = 'memref.global "private" constant @three : memref<4xf32> = dense<3.0>\n' + "".join(kernels)
    called = "\n".join(f"call @{name}(%x) : (memref<4xf32>) -> ()" for name in calls)
    return parse(f"{text}func.func @main(%x: memref<4xf32>) {{ {called} return }}", context())


def kernel(name, value, *inner, kind="elementwise", reads=False):
    more = [f"call @{called}(%x) : (memref<4xf32>) -> ()" for called in inner]
    more += ["%three = memref.get_global @three : memref<4xf32>"] if reads else []
    return KERNEL.format(name=name, kind=kind, value=f"{value:.1f}", more="\n  ".join(more))


class Known:
    """A store that knows the code of everything, or of nothing."""

    def __init__(self, knows, remarks=()):
        self._knows, self._remarks = knows, remarks
        self.keys = []

    def get(self, key):
        self.keys.append(key)
        return KernelCode((0,), None, (0,), False, self._remarks).to_bytes() if self._knows else None

    def put_all(self, entries):
        raise AssertionError("nothing is compiled here")


def bodies(module):
    """Which functions are more than declared."""
    return {symbol_name(op): bool(len(op.regions[0].blocks)) for op in walk(module, "func.func")}


def taken(module, knows=True, remarks=()):
    store = Known(knows, remarks)
    sharing = KernelSharing(store, "")
    sharing.take(module)
    assert module.operation.verify()
    return sharing, store.keys


def test_what_calls_a_known_kernel_keeps_it_if_it_is_compiled_itself():
    parts = kernel("inner", 1), kernel("outer", 2, "inner", kind="loop", reads=True)
    module = module_of(*parts, calls=["outer", "inner"])
    sharing, keys = taken(module)
    assert len(keys) == 1  # what reads a constant of the module cannot be known
    assert bodies(module) == {"inner": True, "outer": True, "main": True}
    assert [kernel.name for kernel in sharing.new.values()] == ["inner"]


def test_what_only_a_known_kernel_calls_goes_with_it():
    parts = kernel("inner", 1), kernel("outer", 2, "inner", kind="loop")
    module = module_of(*parts, calls=["outer"])
    taken(module)
    assert bodies(module) == {"outer": False, "main": True}
    module = module_of(*parts, calls=["outer", "inner"])
    taken(module)
    assert bodies(module) == {"outer": False, "inner": False, "main": True}


@pytest.mark.parametrize("knows", [True, False])
def test_equal_kernels_are_one(knows):
    module = module_of(kernel("a_0", 1), kernel("b", 2), kernel("a_1", 1), calls=["a_0", "b", "a_1"])
    sharing, keys = taken(module, knows)
    assert len(keys) == 2
    assert bodies(module) == {"a_0": not knows, "b": not knows, "main": True}
    assert list(calls_of(module)) == ["a_0", "b"]
    assert sorted((*sharing.known, *sharing.new)) == sorted(f"elementwise.{key[:16]}" for key in keys)


def test_code_is_called_by_its_text_alone():
    """What a kernel is called in its module goes by the others in it, and by what becomes of its arguments."""
    names = ("add_0", "add_1_in_place", "sum_of_all")
    kernels = [shareable_kernels(module_of(kernel(name, 1), calls=[name]).operation, "")[0] for name in names]
    assert len({made.code_name for made in kernels}) == 1
    assert [made.name for made in kernels] == list(names)


def test_the_key_says_what_a_kernel_calls_and_for_what_it_is_compiled():
    one, other = (module_of(kernel("inner", value), kernel("outer", 2, "inner"), calls=["outer"]) for value in (1, 3))
    renamed = module_of(kernel("within", 1), kernel("outside", 2, "within"), calls=["outside"])
    keys = [shareable_kernels(module.operation, "")[0].key for module in (one, other, renamed)]
    assert keys[0] == keys[2] != keys[1]
    assert shareable_kernels(one.operation, "another processor")[0].key != keys[0]


def test_what_is_compiled_speaks_for_itself():
    """A kernel that one known kernel calls, and one that is compiled: only of the former is said what was said."""
    inner = kernel("inner", 1), kernel("outer", 2, "inner", kind="loop", reads=True)
    module = module_of(*inner, kernel("around", 3, "inner", kind="loop"), calls=["outer", "around"])
    said = [
        PortableRemark("a-pass", "passed", "linalg.fill", reason, number, None, "")
        for number, reason in enumerate(("around", "inner"))
    ]
    sharing, _ = taken(module, remarks=tuple(said))
    with collect() as remarks:
        sharing.complete(remarks, ["a-pass"])
    assert [(remark.kernel, remark.reason) for remark in remarks] == [("around", "around")]
