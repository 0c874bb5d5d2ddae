// RUN: pipeline-opt %s --load-plugin=%S/Inputs/marks.py --test-fail --split-input-file --verify-diagnostics

func.func @on_the_line(%a: i32) {
  %x = arith.muli %a, %a : i32 // expected-error {{cannot multiply}}
  return
}

// -----

func.func @relative(%a: i32) {
  // expected-error @+2 {{cannot}}

  %x = arith.muli %a, %a : i32
  return
}

// -----

func.func @below(%a: i32) {
  // expected-error-re @below {{can{{n[aeiou]t}} multiply}}
  %x = arith.muli %a, %a : i32
  return
}

// -----

func.func @above(%a: i32) {
  %x = arith.muli %a, %a : i32
  // expected-error @above {{cannot multiply}}
  return
}

// -----

func.func @minus(%a: i32) {
  %x = arith.muli %a, %a : i32
  return
  // expected-error @-2 {{cannot multiply}}
}

// -----

// Errors of the parser and the verifier, with their notes.

// expected-error @below {{expects parent op}}
scf.yield

// -----

func.func @dominance() -> i32 {
  // expected-error @below {{operand #0 does not dominate this use}}
  %x = arith.addi %y, %y : i32
  // expected-note @below {{operand defined here}}
  %y = arith.constant 1 : i32
  return %x : i32
}

// -----

// expected-warning @below {{ignoring unknown external resources for 'other'}}
{-# external_resources: { other: { key: true } } #-}
