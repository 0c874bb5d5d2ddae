// RUN: pipeline-opt %s --load-plugin=%S/Inputs/marks.py --cse --test-mark=only=f --mlir-timing -o %t 2>&1 | FileCheck %s --check-prefix=TIMING
// RUN: pipeline-opt %s --load-plugin=%S/Inputs/marks.py --cse --test-mark=only=f --mlir-pass-statistics -o %t 2>&1 | FileCheck %s --check-prefix=STATISTICS

// TIMING: ... Execution time report ...
// TIMING: Total Execution Time: {{[0-9.]+}} seconds
// TIMING: ----Wall Time----  ----Name----
// TIMING-NEXT: {{[0-9.]+ \( *[0-9.]+%\)}}  Parser
// TIMING-NEXT: {{[0-9.]+ \( *[0-9.]+%\)}}  cse
// TIMING-NEXT: {{[0-9.]+ \( *[0-9.]+%\)}}  test-mark
// TIMING-NEXT: {{[0-9.]+ \( *[0-9.]+%\)}}  Output
// TIMING-NEXT: {{[0-9.]+ \( *[0-9.]+%\)}}  Rest
// TIMING-NEXT: {{[0-9.]+}} (100.0%)  Total

// STATISTICS: ... Pass statistics report ...
// STATISTICS: {{^}}cse
// STATISTICS-NEXT: (S)      1 runs
// STATISTICS-NEXT: (S)      1 changed
// STATISTICS-NEXT: (S)      0 ops-added
// STATISTICS-NEXT: (S)      1 ops-removed
// STATISTICS-NEXT: {{^}}test-mark
// STATISTICS-NEXT: (S)      2 runs
// STATISTICS-NEXT: (S)      1 changed
func.func @f(%a: i32) -> i32 {
  %x = arith.addi %a, %a : i32
  %y = arith.addi %a, %a : i32
  %z = arith.muli %x, %y : i32
  return %z : i32
}
func.func @g() { return }
