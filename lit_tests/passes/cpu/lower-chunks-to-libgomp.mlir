// RUN: pipeline-opt %s --split-input-file --lower-chunks-to-libgomp | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --lower-chunks-to-libgomp --remarks-filter=lower-chunks-to-libgomp --verify-diagnostics

// The call becomes one of a function that hands its arguments to a team of threads.

// CHECK-LABEL: llvm.func @scale_0_chunk_0
// CHECK-LABEL: llvm.func @scale_0(
// CHECK: llvm.call @scale_0_chunk_0_spawn(%{{.*}}, %{{.*}}, %{{.*}}) : (i64, i64, !llvm.ptr) -> ()
// CHECK: llvm.mlir.global external @pipeline_threads()
// CHECK: llvm.func @pipeline_parallel(!llvm.ptr, !llvm.ptr, i32, i32)
// CHECK-LABEL: llvm.func @pipeline_part(
// CHECK: llvm.call @pipeline_thread_num()
// CHECK: llvm.call @pipeline_num_threads()
// CHECK-LABEL: llvm.func @scale_0_chunk_0_spawn(
// CHECK: %[[DATA:.*]] = llvm.alloca %{{.*}} x !llvm.struct<(i64, i64, ptr)>
// CHECK: llvm.call @pipeline_parallel(%{{.*}}, %[[DATA]], %{{.*}}, %{{.*}})
// CHECK-LABEL: llvm.func @scale_0_chunk_0_share(
// CHECK: %[[PART:.*]] = llvm.call @pipeline_part(%{{.*}}, %{{.*}}, %{{.*}})
// CHECK: %[[FROM:.*]] = llvm.extractvalue %[[PART]][0]
// CHECK: %[[TO:.*]] = llvm.extractvalue %[[PART]][1]
// CHECK: llvm.call @scale_0_chunk_0(%[[FROM]], %[[TO]], %{{.*}}) : (i64, i64, !llvm.ptr) -> ()
// expected-remark @below {{passed: its iterations are shared by threads}}
llvm.func @scale_0_chunk_0(%first: i64, %last: i64, %x: !llvm.ptr) attributes {pipeline.chunk = 4 : i64} {
  llvm.return
}
llvm.func @scale_0(%x: !llvm.ptr) {
  %first = llvm.mlir.constant(0 : i64) : i64
  %last = llvm.mlir.constant(64 : i64) : i64
  llvm.call @scale_0_chunk_0(%first, %last, %x) : (i64, i64, !llvm.ptr) -> ()
  llvm.return
}

// -----

// Where threads have scratch of their own, no more of them come than there is scratch for, and each gets its number.

// CHECK-LABEL: llvm.func @rows_0_chunk_0_spawn(
// CHECK-SAME: %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: !llvm.ptr, %[[THREADS:.*]]: i64, %{{.*}}: i64)
// CHECK: %[[WANTED:.*]] = llvm.load
// CHECK: %[[MOST:.*]] = llvm.call @pipeline_max_threads()
// CHECK: %[[IS_OPEN:.*]] = llvm.icmp "eq" %[[WANTED]]
// CHECK: %[[CHOSEN:.*]] = llvm.select %[[IS_OPEN]], %[[MOST]], %[[WANTED]]
// CHECK: %[[LIMIT:.*]] = llvm.trunc %[[THREADS]]
// CHECK: %[[TEAM:.*]] = llvm.intr.umin(%[[CHOSEN]], %[[LIMIT]])
// CHECK: llvm.call @pipeline_parallel(%{{.*}}, %{{.*}}, %[[TEAM]], %{{.*}})
// CHECK-LABEL: llvm.func @rows_0_chunk_0_share(
// CHECK: %[[ID:.*]] = llvm.extractvalue %{{.*}}[2]
// CHECK: llvm.call @rows_0_chunk_0(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[ID]])
// expected-remark @below {{passed: its iterations are shared by threads}}
llvm.func @rows_0_chunk_0(%first: i64, %last: i64, %x: !llvm.ptr, %threads: i64, %thread: i64) attributes {pipeline.chunk = 1 : i64, pipeline.numbered} {
  llvm.return
}
llvm.func @rows_0(%x: !llvm.ptr, %threads: i64) {
  %first = llvm.mlir.constant(0 : i64) : i64
  %last = llvm.mlir.constant(64 : i64) : i64
  llvm.call @rows_0_chunk_0(%first, %last, %x, %threads, %first) : (i64, i64, !llvm.ptr, i64, i64) -> ()
  llvm.return
}

// -----

// Other calls stay, and nothing of threads is declared.

// CHECK-NOT: pipeline_parallel
// CHECK-LABEL: llvm.func @main
// CHECK-NEXT: llvm.call @scale_0(%{{.*}}) : (!llvm.ptr) -> ()
// CHECK-NOT: pipeline_threads
llvm.func @scale_0(%x: !llvm.ptr) {
  llvm.return
}
llvm.func @main(%x: !llvm.ptr) {
  llvm.call @scale_0(%x) : (!llvm.ptr) -> ()
  llvm.return
}
