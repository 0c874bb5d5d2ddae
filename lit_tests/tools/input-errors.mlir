// Wrong input is one line with its position.

// RUN: not pipeline-opt %s 2>&1 | FileCheck %s --check-prefix=SYNTAX
// SYNTAX: {{^}}pipeline-opt: error: {{.*}}input-errors.mlir:17:18: custom op 'retrun' is unknown

// RUN: not pipeline-opt %S/no-such-file.mlir 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: {{^}}pipeline-opt: error: {{.*}}no-such-file.mlir: No such file or directory{{$}}

// RUN: not pipeline-opt %S 2>&1 | FileCheck %s --check-prefix=FOLDER
// FOLDER: {{^}}pipeline-opt: error: {{.*}}: Is a directory{{$}}

// RUN: echo "func.func @f() { return }" | pipeline-opt - -o - | FileCheck %s --check-prefix=GOOD
// GOOD: func.func @f()

// RUN: echo "oops" | not pipeline-opt 2>&1 | FileCheck %s --check-prefix=STDIN
// STDIN: {{^}}pipeline-opt: error: <stdin>:1:1:
func.func @f() { retrun }
