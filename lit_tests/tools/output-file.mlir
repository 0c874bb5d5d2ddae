// RUN: rm -rf %t && mkdir %t
// RUN: pipeline-opt %s -o %t/out.mlir > %t/stdout.txt
// RUN: FileCheck %s --input-file %t/out.mlir
// RUN: echo end >> %t/stdout.txt
// RUN: FileCheck %s --check-prefix=EMPTY --input-file %t/stdout.txt

// RUN: not pipeline-opt %s -o %t/no/such/folder.mlir 2>&1 | FileCheck %s --check-prefix=FOLDER
// FOLDER: {{^}}pipeline-opt: error: {{.*}}folder.mlir: No such file or directory{{$}}

// EMPTY-NOT: func
// EMPTY: {{^}}end{{$}}

// CHECK: func.func @f()
func.func @f() { return }
