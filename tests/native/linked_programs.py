"""Two modules that call each other, with all that object files may hold, for tests of the linker."""

from __future__ import annotations

import ctypes

#: Global variables of all kinds, a table of addresses, a jump table, functions of libm and of another object file,
#: their addresses taken, vectors of constants, more alignment than usual.
FIRST = """
@counter = global i64 40, align 8
@zeros = internal global [5000 x i64] zeroinitializer, align 64
@aligned = internal global [3 x i8] c"abc", align 256
@table = internal constant [3 x ptr] [ptr @twice, ptr @thrice, ptr @cos_of]
@vector = private constant <4 x i64> <i64 1, i64 2, i64 3, i64 4>, align 32
declare i64 @thrice(i64)
declare double @cos(double)
declare double @fmod(double, double)
define i64 @twice(i64 %x) { %y = shl i64 %x, 1 ret i64 %y }
define internal i64 @cos_of(i64 %x) noinline {
  %f = sitofp i64 %x to double
  %c = call double @cos(double %f)
  %m = call double @fmod(double %f, double 7.0)
  %s = fadd double %c, %m
  %t = fmul double %s, 1000000.0
  %r = fptosi double %t to i64
  ret i64 %r
}
define ptr @address_of_cos() { ret ptr @cos }
define i64 @choose(i64 %x) noinline {
  switch i64 %x, label %other [ i64 0, label %a i64 1, label %b i64 2, label %c i64 3, label %d i64 4, label %e ]
a: br label %other
b: %tb = call i64 @twice(i64 %x) br label %other
c: %tc = call i64 @thrice(i64 %x) br label %other
d: %td = call i64 @cos_of(i64 %x) br label %other
e: store i64 9, ptr @counter br label %other
other:
  %r = phi i64 [ 7, %0 ], [ 1, %a ], [ %tb, %b ], [ %tc, %c ], [ %td, %d ], [ 5, %e ]
  ret i64 %r
}
define void @entry(ptr %slots) {
  %x = load i64, ptr %slots
  %chosen = call i64 @choose(i64 %x)
  %1 = getelementptr i64, ptr %slots, i64 1
  store i64 %chosen, ptr %1
  %wrapped = urem i64 %x, 3
  %place = getelementptr ptr, ptr @table, i64 %wrapped
  %function = load ptr, ptr %place
  %result = call i64 %function(i64 %x)
  %2 = getelementptr i64, ptr %slots, i64 2
  store i64 %result, ptr %2
  %old = load i64, ptr @counter
  %new = add i64 %old, 1
  store i64 %new, ptr @counter
  %3 = getelementptr i64, ptr %slots, i64 3
  store i64 %new, ptr %3
  %z = getelementptr i64, ptr @zeros, i64 %x
  %zero = load i64, ptr %z
  %v = load <4 x i64>, ptr @vector
  %e = extractelement <4 x i64> %v, i64 %wrapped
  %sum = add i64 %zero, %e
  %4 = getelementptr i64, ptr %slots, i64 4
  store i64 %sum, ptr %4
  %rest = ptrtoint ptr @aligned to i64
  %low = and i64 %rest, 255
  %letter = load i8, ptr @aligned
  %wide = zext i8 %letter to i64
  %both = add i64 %low, %wide
  %5 = getelementptr i64, ptr %slots, i64 5
  store i64 %both, ptr %5
  ret void
}
"""
SECOND = """
@shared = external global i64
@counter = external global i64
define i64 @thrice(i64 %x) { %y = mul i64 %x, 3 ret i64 %y }
define i64 @read_counter() { %x = load i64, ptr @counter ret i64 %x }
""".replace("@shared = external global i64\n", "")


def call(code, x):
    slots = (ctypes.c_int64 * 6)(x)
    code.entry("entry")(ctypes.addressof(slots))
    return list(slots)
