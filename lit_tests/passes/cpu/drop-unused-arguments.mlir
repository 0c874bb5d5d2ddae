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

llvm.func @of_one(%x: i64) {
  llvm.return
}

// A kernel that is shared is told which of its arguments are left, also when some go later than others.

// CHECK-LABEL: llvm.func @shared
// CHECK-SAME: (%{{.*}}: !llvm.ptr, %{{.*}}: i64)
// CHECK-SAME: pipeline.taken = array<i64: 1, 3>
llvm.func @shared(%a: i64, %p: !llvm.ptr, %b: i64, %v: i64) attributes {pipeline.shared = "shared.0"} {
  llvm.call @of_one(%b) : (i64) -> ()
  llvm.store %v, %p : i64, !llvm.ptr
  llvm.return
}

// The declaration of one whose code is elsewhere says what that takes. One that says nothing takes all.

// CHECK: llvm.func @elsewhere(!llvm.ptr, i64) -> i64
// CHECK: llvm.func @takes_all(i64, !llvm.ptr)
llvm.func @elsewhere(i64, !llvm.ptr, i64, i64) -> i64 attributes {pipeline.taken = array<i64: 1, 2>}
llvm.func @takes_all(i64, !llvm.ptr)

// CHECK-LABEL: llvm.func @calls_shared
// CHECK: llvm.call @shared(%[[P:.*]], %[[V:.*]]) : (!llvm.ptr, i64) -> ()
// CHECK: llvm.call @elsewhere(%[[P]], %{{.*}}) : (!llvm.ptr, i64) -> i64
// CHECK: llvm.call @takes_all(%{{.*}}, %[[P]]) : (i64, !llvm.ptr) -> ()
llvm.func @calls_shared(%a: i64, %p: !llvm.ptr, %v: i64) -> i64 {
  llvm.call @shared(%a, %p, %a, %v) : (i64, !llvm.ptr, i64, i64) -> ()
  %r = llvm.call @elsewhere(%v, %p, %a, %v) : (i64, !llvm.ptr, i64, i64) -> i64
  llvm.call @takes_all(%a, %p) : (i64, !llvm.ptr) -> ()
  llvm.return %r : i64
}
