"""Functions in libraries, and what else the tests of `fuse_into` share."""

from __future__ import annotations

import torch
from function_model import Function
from fusion.support import compiled, groups

DESCRIPTOR1 = "{ptr, ptr, i64, [1 x i64], [1 x i64]}"
DESCRIPTOR2 = "{ptr, ptr, i64, [2 x i64], [2 x i64]}"

ADD_RELU = f"""
define void @add_relu(ptr %a, ptr %b, ptr %o) nounwind {{
entry:
  %ap = getelementptr {DESCRIPTOR1}, ptr %a, i64 0, i32 1
  %ad = load ptr, ptr %ap
  %bp = getelementptr {DESCRIPTOR1}, ptr %b, i64 0, i32 1
  %bd = load ptr, ptr %bp
  %op = getelementptr {DESCRIPTOR1}, ptr %o, i64 0, i32 1
  %od = load ptr, ptr %op
  %np = getelementptr {DESCRIPTOR1}, ptr %o, i64 0, i32 3, i64 0
  %n = load i64, ptr %np
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %body]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %end
body:
  %ai = getelementptr float, ptr %ad, i64 %i
  %x = load float, ptr %ai
  %bi = getelementptr float, ptr %bd, i64 %i
  %y = load float, ptr %bi
  %s = fadd float %x, %y
  %positive = fcmp ogt float %s, 0.0
  %r = select i1 %positive, float %s, float 0.0
  %oi = getelementptr float, ptr %od, i64 %i
  store float %r, ptr %oi
  %next = add i64 %i, 1
  br label %head
end:
  ret void
}}
"""

#: Takes a and b of any size, a bias, the result, and the numbers of the steps; the last one: 0 relu, 1 negation.
GEMM = f"""
define void @gemm(ptr %a, ptr %b, ptr %c, ptr %o, i64 %s0, i64 %s1, i64 %activation) nounwind {{
entry:
  %ap = getelementptr {DESCRIPTOR2}, ptr %a, i64 0, i32 1
  %ad = load ptr, ptr %ap
  %bp = getelementptr {DESCRIPTOR2}, ptr %b, i64 0, i32 1
  %bd = load ptr, ptr %bp
  %cp = getelementptr {DESCRIPTOR1}, ptr %c, i64 0, i32 1
  %cd = load ptr, ptr %cp
  %op = getelementptr {DESCRIPTOR2}, ptr %o, i64 0, i32 1
  %od = load ptr, ptr %op
  %mp = getelementptr {DESCRIPTOR2}, ptr %a, i64 0, i32 3, i64 0
  %m = load i64, ptr %mp
  %kp = getelementptr {DESCRIPTOR2}, ptr %a, i64 0, i32 3, i64 1
  %k = load i64, ptr %kp
  %np = getelementptr {DESCRIPTOR2}, ptr %b, i64 0, i32 3, i64 1
  %n = load i64, ptr %np
  %all = mul i64 %m, %n
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %done]
  %more = icmp slt i64 %i, %all
  br i1 %more, label %start, label %end
start:
  %row = sdiv i64 %i, %n
  %column = srem i64 %i, %n
  %ci = getelementptr float, ptr %cd, i64 %column
  %bias = load float, ptr %ci
  br label %sum
sum:
  %j = phi i64 [0, %start], [%j2, %term]
  %acc = phi float [%bias, %start], [%acc2, %term]
  %inside = icmp slt i64 %j, %k
  br i1 %inside, label %term, label %done
term:
  %arow = mul i64 %row, %k
  %ai = add i64 %arow, %j
  %ae = getelementptr float, ptr %ad, i64 %ai
  %x = load float, ptr %ae
  %brow = mul i64 %j, %n
  %bi = add i64 %brow, %column
  %be = getelementptr float, ptr %bd, i64 %bi
  %y = load float, ptr %be
  %p = fmul float %x, %y
  %acc2 = fadd float %acc, %p
  %j2 = add i64 %j, 1
  br label %sum
done:
  %positive = fcmp ogt float %acc, 0.0
  %relu = select i1 %positive, float %acc, float 0.0
  %zero = fsub float %acc, %acc
  %negated = fsub float %zero, %acc
  %is_relu = icmp eq i64 %activation, 0
  %r = select i1 %is_relu, float %relu, float %negated
  %oe = getelementptr float, ptr %od, i64 %i
  store float %r, ptr %oe
  %next = add i64 %i, 1
  br label %head
end:
  ret void
}}
"""


def run(function, *args, **options):
    return compiled(Function(function), *args, **options)


def labels(exe):
    return [label for label, _ in groups(exe)]


X, Y = (torch.randn(6, generator=torch.Generator().manual_seed(seed)) for seed in (0, 1))
