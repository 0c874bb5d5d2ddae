// RUN: pipeline-opt %s --drop-unused-arguments | FileCheck %s
// RUN: pipeline-opt %s --drop-unused-arguments --remarks-filter=drop-unused-arguments 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// REMARK: 2 of 4 arguments

// What a kernel does not read goes at its calls, too.

// CHECK-LABEL: llvm.func @kernel
// CHECK-SAME: (%[[P:.*]]: !llvm.ptr {llvm.noalias}, %[[V:.*]]: i64) -> i64
// CHECK-NEXT: llvm.store %[[V]], %[[P]]
llvm.func @kernel(%p: !llvm.ptr {llvm.noalias}, %offset: i64, %size: i64, %v: i64) -> i64 {
  llvm.store %v, %p : i64, !llvm.ptr
  llvm.return %v : i64
}

// What is only handed on to an argument that goes, goes.

// CHECK-LABEL: llvm.func @outer
// CHECK-SAME: (%[[P:.*]]: !llvm.ptr, %[[V:.*]]: i64) -> i64
// CHECK-NEXT: llvm.call @kernel(%[[P]], %[[V]]) : (!llvm.ptr, i64) -> i64
llvm.func @outer(%p: !llvm.ptr, %size: i64, %v: i64) -> i64 {
  %r = llvm.call @kernel(%p, %size, %size, %v) : (!llvm.ptr, i64, i64, i64) -> i64
  llvm.return %r : i64
}

// A chunk of a loop is always told where it begins and ends; numbered threads, how many there may be and which it is.

// CHECK-LABEL: llvm.func @chunk
// CHECK-SAME: (%{{.*}}: i64, %{{.*}}: i64, %{{.*}}: !llvm.ptr)
llvm.func @chunk(%from: i64, %to: i64, %offset: i64, %p: !llvm.ptr) attributes {pipeline.chunk = 1 : i64} {
  %one = llvm.mlir.constant(1 : i64) : i64
  llvm.store %one, %p : i64, !llvm.ptr
  llvm.return
}

// CHECK-LABEL: llvm.func @numbered
// CHECK-SAME: (%{{.*}}: i64, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: i64)
llvm.func @numbered(%from: i64, %to: i64, %offset: i64, %most: i64, %id: i64)
    attributes {pipeline.chunk = 1 : i64, pipeline.numbered} {
  llvm.return
}

// Must not fire: a function that is called from outside.

// CHECK-LABEL: llvm.func @main
// CHECK-SAME: (%[[P:.*]]: !llvm.ptr, %[[SIZE:.*]]: i64, %[[V:.*]]: i64)
// CHECK-NEXT: llvm.call @outer(%[[P]], %[[V]]) : (!llvm.ptr, i64) -> i64
// CHECK-NEXT: llvm.call @chunk(%[[V]], %[[V]], %[[P]]) : (i64, i64, !llvm.ptr) -> ()
// CHECK-NEXT: llvm.call @numbered(%[[V]], %[[V]], %[[V]], %[[V]])
// CHECK-NEXT: llvm.call @declared(%[[P]], %[[SIZE]])
llvm.func @main(%p: !llvm.ptr, %size: i64, %v: i64) {
  %r = llvm.call @outer(%p, %size, %v) : (!llvm.ptr, i64, i64) -> i64
  llvm.call @chunk(%v, %v, %size, %p) : (i64, i64, i64, !llvm.ptr) -> ()
  llvm.call @numbered(%v, %v, %size, %v, %v) : (i64, i64, i64, i64, i64) -> ()
  llvm.call @declared(%p, %size) : (!llvm.ptr, i64) -> ()
  llvm.return
}

// Must not fire: a function of which only the types are known.

// CHECK-LABEL: llvm.func @declared(!llvm.ptr, i64)
llvm.func @declared(!llvm.ptr, i64)
