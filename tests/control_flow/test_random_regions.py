"""Random programs with nested branches and loops: the passes over regions keep their results."""

from __future__ import annotations

import random

import numpy as np
import pytest
from test_region_passes import PASSES

import pipeline

SIZE = 6
VECTOR, MATRIX, COUNT = f"tensor<{SIZE}xf32>", f"tensor<{SIZE}x{SIZE}xf32>", "tensor<i64>"
HEADER = """
#id = affine_map<(d0) -> (d0)>
#none = affine_map<(d0) -> ()>
"""
UNARY = ("math.sin %a : f32", "math.tanh %a : f32", "arith.negf %a : f32")
BINARY = ("arith.addf %a, %b : f32", "arith.subf %a, %b : f32", "arith.mulf %a, %b : f32")


class Program:
    """Writes a function statement by statement. Scopes are lists of (name, type); numbers stay small."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.names = 0

    def text(self) -> str:
        scope = [("%x", VECTOR), ("%y", VECTOR), ("%t", COUNT)]
        body = self.block(scope, 3)
        results = [self.pick(scope, VECTOR), self.pick(scope, VECTOR), self.pick(scope, COUNT)]
        return f"""{HEADER}
func.func @main(%x: {VECTOR}, %y: {VECTOR}, %t: {COUNT}, %m: {MATRIX}) -> ({VECTOR}, {VECTOR}, {COUNT}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f32
  {body}
  return {", ".join(results)} : {VECTOR}, {VECTOR}, {COUNT}
}}
"""

    def name(self) -> str:
        self.names += 1
        return f"%v{self.names}"

    def pick(self, scope, kind: str) -> str:
        return self.random.choice([name for name, other in scope if other == kind])

    def block(self, scope, depth: int) -> str:
        forms = [self.elementwise, self.elementwise, self.product, self.update, self.count]
        if depth:
            forms += [self.branch, self.branch, self.loop, self.while_loop]
        return "".join(self.random.choice(forms)(scope, depth) for _ in range(self.random.randint(1, 4)))

    def elementwise(self, scope, depth: int) -> str:
        result, binary = self.name(), self.random.random() < 0.6
        inputs = [self.pick(scope, VECTOR) for _ in range(2 if binary else 1)]
        op = self.random.choice(BINARY if binary else UNARY)
        maps = ", ".join(["#id"] * (len(inputs) + 1))
        scope.append((result, VECTOR))
        return f"""
  {result}_e = tensor.empty() : {VECTOR}
  {result} = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel"]}}
      ins({", ".join(inputs)} : {", ".join([VECTOR] * len(inputs))}) outs({result}_e : {VECTOR}) {{
  ^bb0({"%a: f32, %b: f32" if binary else "%a: f32"}, %o: f32):
    %w = {op}
    %v = math.tanh %w : f32
    linalg.yield %v : f32
  }} -> {VECTOR}"""

    def product(self, scope, depth: int) -> str:
        result, source = self.name(), self.pick(scope, VECTOR)
        scope.append((result, VECTOR))
        return f"""
  {result}_e = tensor.empty() : {VECTOR}
  {result}_f = linalg.fill ins(%zero : f32) outs({result}_e : {VECTOR}) -> {VECTOR}
  {result} = linalg.matvec ins(%m, {source} : {MATRIX}, {VECTOR})
      outs({result}_f : {VECTOR}) -> {VECTOR}"""

    def update(self, scope, depth: int) -> str:
        result, source, target = self.name(), self.pick(scope, VECTOR), self.pick(scope, VECTOR)
        scope.append((result, VECTOR))
        start, end = self.random.randint(0, 3), self.random.randint(0, 3)
        return f"""
  {result}_p = tensor.extract_slice {source}[{start}] [3] [1] : {VECTOR} to tensor<3xf32>
  {result} = tensor.insert_slice {result}_p into {target}[{end}] [3] [1] : tensor<3xf32> into {VECTOR}"""

    def count(self, scope, depth: int) -> str:
        result, source = self.name(), self.pick(scope, COUNT)
        scope.append((result, COUNT))
        return f"""
  {result}_n = tensor.extract {source}[] : {COUNT}
  {result}_m = arith.addi {result}_n, %one : i64
  {result} = tensor.from_elements {result}_m : {COUNT}"""

    def condition(self, scope) -> tuple[str, str]:
        result = self.name()
        if self.random.random() < 0.4:
            return (
                result,
                f"""
  {result}_n = tensor.extract {self.pick(scope, COUNT)}[] : {COUNT}
  {result}_k = arith.constant {self.random.randint(0, 3)} : i64
  {result} = arith.cmpi slt, {result}_n, {result}_k : i64""",
            )
        return (
            result,
            f"""
  {result}_e = tensor.empty() : tensor<f32>
  {result}_f = linalg.fill ins(%zero : f32) outs({result}_e : tensor<f32>) -> tensor<f32>
  {result}_t = linalg.generic {{indexing_maps = [#id, #none], iterator_types = ["reduction"]}}
      ins({self.pick(scope, VECTOR)} : {VECTOR}) outs({result}_f : tensor<f32>) {{
  ^bb0(%a: f32, %o: f32):
    %v = arith.addf %a, %o : f32
    linalg.yield %v : f32
  }} -> tensor<f32>
  {result}_s = tensor.extract {result}_t[] : tensor<f32>
  {result} = arith.cmpf ogt, {result}_s, %zero : f32""",
        )

    def types(self) -> list[str]:
        return [self.random.choice([VECTOR, VECTOR, COUNT]) for _ in range(self.random.randint(1, 3))]

    def branch(self, scope, depth: int) -> str:
        condition, lines = self.condition(scope)
        types, result = self.types(), self.name()
        sides = []
        for _ in range(2):
            inner = list(scope)
            body = self.block(inner, depth - 1) if self.random.random() < 0.8 else ""
            sides.append(
                f"{body}\n  scf.yield {', '.join(self.pick(inner, one) for one in types)} : {', '.join(types)}"
            )
        scope += [(f"{result}#{number}", one) for number, one in enumerate(types)]
        return f"""{lines}
  {result}:{len(types)} = scf.if {condition} -> ({", ".join(types)}) {{{sides[0]}
  }} else {{{sides[1]}
  }}"""

    def loop(self, scope, depth: int) -> str:
        types, result = self.types(), self.name()
        start = [self.pick(scope, one) for one in types]
        arguments = [self.name() for _ in types]
        inner = [*scope, *zip(arguments, types, strict=True)]
        body = self.block(inner, depth - 1)
        carried = ", ".join(f"{name} = {value}" for name, value in zip(arguments, start, strict=True))
        following = ", ".join(self.pick([*inner, *inner[len(scope) :] * 3], one) for one in types)
        kinds = ", ".join(types)
        scope += [(f"{result}#{number}", one) for number, one in enumerate(types)]
        return f"""
  {result}_n = arith.constant {self.random.randint(0, 4)} : index
  {result}:{len(types)} = scf.for {result}_i = %c0 to {result}_n step %c1 iter_args({carried}) -> ({kinds}) {{{body}
    scf.yield {following} : {kinds}
  }}"""

    def while_loop(self, scope, depth: int) -> str:
        types, result, count = [*self.types(), COUNT], self.name(), self.name()
        start = [*(self.pick(scope, one) for one in types[:-1]), f"{result}_z"]
        outer, arguments = [self.name() for _ in types], [self.name() for _ in types]
        inner = [*scope, *zip(arguments, types, strict=True)]
        body = self.block(inner, depth - 1)
        carried = ", ".join(f"{name} = {value}" for name, value in zip(outer, start, strict=True))
        following = ", ".join(self.pick([*inner, *inner[len(scope) :] * 3], one) for one in types[:-1])
        kinds = ", ".join(types)
        scope += [(f"{result}#{number}", one) for number, one in enumerate(types)]
        return f"""
  {result}_z = arith.constant dense<0> : {COUNT}
  {result}:{len(types)} = scf.while ({carried}) : ({kinds}) -> ({kinds}) {{
    {count} = tensor.extract {outer[-1]}[] : {COUNT}
    {count}_k = arith.constant {self.random.randint(0, 4)} : i64
    {count}_c = arith.cmpi slt, {count}, {count}_k : i64
    scf.condition({count}_c) {", ".join(outer)} : {kinds}
  }} do {{
  ^bb0({", ".join(f"{name}: {one}" for name, one in zip(arguments, types, strict=True))}):{body}
    {count}_n = tensor.extract {arguments[-1]}[] : {COUNT}
    {count}_m = arith.addi {count}_n, %one : i64
    {count}_t = tensor.from_elements {count}_m : {COUNT}
    scf.yield {following}, {count}_t : {kinds}
  }}"""


@pytest.mark.parametrize("seed", range(24))
def test_random_program(seed):
    text = Program(seed).text()
    plain, full = pipeline.compile(text, disable=list(PASSES)), pipeline.compile(text)
    numbers = np.random.default_rng(seed)
    for count in (0, 2):
        x, y = (numbers.standard_normal(SIZE).astype(np.float32) for _ in range(2))
        matrix = (numbers.standard_normal((SIZE, SIZE)) / 2).astype(np.float32)
        got, wanted = (one(x, y, np.array(count), matrix) for one in (full, plain))
        for mine, its in zip(got, wanted, strict=True):
            np.testing.assert_allclose(mine, its, rtol=1e-4, atol=1e-5, err_msg=text)
