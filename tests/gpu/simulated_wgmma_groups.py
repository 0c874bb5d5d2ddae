"""What wgmma's fences, groups and waits are for, checked: as LLVM IR for the CPU, beside `simulated_warpgroups`.

The tiles of a product must be what they were when the wait says that its group is done; what cp.async brought must have
been published to the other proxy; and a fence must stand before the first product of a group.
"""

from __future__ import annotations

#: The products that a thread may have under way, and the bytes of its record of them. First five numbers: how many,
#: groups, whether there was a fence, whether something is unpublished, whether something was wrong. Then for each
#: product both descriptors, what the tiles summed up to, which dims run along their rows, its columns and its group.
_UNDER_WAY, _HEAD, _ENTRY = 64, 24, 48
RECORD = _HEAD + _ENTRY * _UNDER_WAY

#: Where a context has the records of all threads.
RECORDS = 96

HELPERS = f"""
define internal ptr @sim_wg_record_of(ptr %ctx, i32 %t) alwaysinline {{
  %p = getelementptr i8, ptr %ctx, i64 {RECORDS}
  %records = load ptr, ptr %p
  %n = mul i32 %t, {RECORD}
  %q = getelementptr i8, ptr %records, i32 %n
  ret ptr %q
}}
define internal ptr @sim_wg_record(ptr %ctx) alwaysinline {{
  %t = load i32, ptr %ctx
  %q = call ptr @sim_wg_record_of(ptr %ctx, i32 %t)
  ret ptr %q
}}
define internal void @sim_wg_set(ptr %ctx, i32 %field, i32 %value) alwaysinline {{
  %q = call ptr @sim_wg_record(ptr %ctx)
  %p = getelementptr i32, ptr %q, i32 %field
  store i32 %value, ptr %p
  ret void
}}
define internal i32 @sim_wg_get(ptr %ctx, i32 %field) alwaysinline {{
  %q = call ptr @sim_wg_record(ptr %ctx)
  %p = getelementptr i32, ptr %q, i32 %field
  %v = load i32, ptr %p
  ret i32 %v
}}
define internal void @sim_wg_fence(ptr %ctx) noinline {{
  call void @sim_wg_set(ptr %ctx, i32 2, i32 1)
  ret void
}}
define internal void @sim_wg_publish(ptr %ctx) noinline {{
  call void @sim_wg_set(ptr %ctx, i32 3, i32 0)
  ret void
}}
define internal void @sim_wg_commit(ptr %ctx) noinline {{
  call void @sim_wg_set(ptr %ctx, i32 2, i32 0)
  %g = call i32 @sim_wg_get(ptr %ctx, i32 1)
  %g1 = add i32 %g, 1
  call void @sim_wg_set(ptr %ctx, i32 1, i32 %g1)
  ret void
}}
define internal i64 @sim_wg_sum_of(i64 %d, i32 %size, i32 %major) noinline {{
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i1, %loop ]
  %sum = phi i64 [ 1, %entry ], [ %sum1, %loop ]
  %mn = udiv i32 %i, 16
  %k = urem i32 %i, 16
  %x = call i16 @sim_wg_bits(i64 %d, i32 %mn, i32 %k, i32 %major)
  %w = zext i16 %x to i64
  %m = mul i64 %sum, 31
  %sum1 = add i64 %m, %w
  %i1 = add i32 %i, 1
  %end = mul i32 %size, 16
  %go = icmp ult i32 %i1, %end
  br i1 %go, label %loop, label %done
done:
  ret i64 %sum1
}}
define internal i64 @sim_wg_sum(i64 %a, i64 %b, i32 %am, i32 %bm, i32 %columns) noinline {{
  %regs = icmp eq i32 %am, 2
  br i1 %regs, label %right, label %left
left:
  %x = call i64 @sim_wg_sum_of(i64 %a, i32 64, i32 %am)
  br label %right
right:
  %l = phi i64 [ 0, %0 ], [ %x, %left ]
  %y = call i64 @sim_wg_sum_of(i64 %b, i32 %columns, i32 %bm)
  %s = add i64 %l, %y
  ret i64 %s
}}
define internal void @sim_wg_start(ptr %ctx, i64 %a, i64 %b, i32 %am, i32 %bm, i32 %columns) noinline {{
entry:
  %fenced = call i32 @sim_wg_get(ptr %ctx, i32 2)
  %np = getelementptr i32, ptr %ctx, i32 6
  %threads = load i32, ptr %np
  br label %loop
loop:
  %t = phi i32 [ 0, %entry ], [ %t1, %loop ]
  %dirty = phi i32 [ 0, %entry ], [ %dirty1, %loop ]
  %q = call ptr @sim_wg_record_of(ptr %ctx, i32 %t)
  %p = getelementptr i32, ptr %q, i32 3
  %d = load i32, ptr %p
  %dirty1 = or i32 %dirty, %d
  %t1 = add i32 %t, 1
  %go = icmp ult i32 %t1, %threads
  br i1 %go, label %loop, label %check
check:
  %unfenced = icmp eq i32 %fenced, 0
  %unpublished = icmp ne i32 %dirty1, 0
  %bad = or i1 %unfenced, %unpublished
  br i1 %bad, label %wrong, label %record
wrong:
  call void @sim_wg_set(ptr %ctx, i32 4, i32 1)
  br label %record
record:
  %lane = call i32 @sim_lane(ptr %ctx)
  %first = icmp eq i32 %lane, 0
  br i1 %first, label %keep, label %end
keep:
  %n = call i32 @sim_wg_get(ptr %ctx, i32 0)
  %full = icmp uge i32 %n, {_UNDER_WAY}
  br i1 %full, label %trap, label %room
trap:
  call void @llvm.trap()
  unreachable
room:
  %g = call i32 @sim_wg_get(ptr %ctx, i32 1)
  %e = call ptr @sim_wg_entry(ptr %ctx, i32 %n)
  %e1 = getelementptr i64, ptr %e, i64 1
  %e2 = getelementptr i64, ptr %e, i64 2
  %e3 = getelementptr i32, ptr %e, i64 6
  %e4 = getelementptr i32, ptr %e, i64 7
  %e5 = getelementptr i32, ptr %e, i64 8
  %e6 = getelementptr i32, ptr %e, i64 9
  %sum = call i64 @sim_wg_sum(i64 %a, i64 %b, i32 %am, i32 %bm, i32 %columns)
  store i64 %a, ptr %e
  store i64 %b, ptr %e1
  store i64 %sum, ptr %e2
  store i32 %am, ptr %e3
  store i32 %bm, ptr %e4
  store i32 %columns, ptr %e5
  store i32 %g, ptr %e6
  %n1 = add i32 %n, 1
  call void @sim_wg_set(ptr %ctx, i32 0, i32 %n1)
  br label %end
end:
  ret void
}}
define internal ptr @sim_wg_entry(ptr %ctx, i32 %n) alwaysinline {{
  %q = call ptr @sim_wg_record(ptr %ctx)
  %b = mul i32 %n, {_ENTRY}
  %c = add i32 %b, {_HEAD}
  %e = getelementptr i8, ptr %q, i32 %c
  ret ptr %e
}}
define internal void @sim_wg_wait(ptr %ctx, i32 %pending) noinline {{
entry:
  %n = call i32 @sim_wg_get(ptr %ctx, i32 0)
  %g = call i32 @sim_wg_get(ptr %ctx, i32 1)
  br label %head
head:
  %i = phi i32 [ 0, %entry ], [ %i1, %next ]
  %kept = phi i32 [ 0, %entry ], [ %kept1, %next ]
  %more = icmp ult i32 %i, %n
  br i1 %more, label %body, label %end
body:
  %e = call ptr @sim_wg_entry(ptr %ctx, i32 %i)
  %e6 = getelementptr i32, ptr %e, i64 9
  %own = load i32, ptr %e6
  %age = sub i32 %g, %own
  %done = icmp ugt i32 %age, %pending
  br i1 %done, label %check, label %keep
check:
  %e1 = getelementptr i64, ptr %e, i64 1
  %e2 = getelementptr i64, ptr %e, i64 2
  %e3 = getelementptr i32, ptr %e, i64 6
  %e4 = getelementptr i32, ptr %e, i64 7
  %e5 = getelementptr i32, ptr %e, i64 8
  %a = load i64, ptr %e
  %b = load i64, ptr %e1
  %before = load i64, ptr %e2
  %am = load i32, ptr %e3
  %bm = load i32, ptr %e4
  %columns = load i32, ptr %e5
  %now = call i64 @sim_wg_sum(i64 %a, i64 %b, i32 %am, i32 %bm, i32 %columns)
  %same = icmp eq i64 %now, %before
  br i1 %same, label %next, label %wrong
wrong:
  call void @sim_wg_set(ptr %ctx, i32 4, i32 1)
  br label %next
keep:
  %k = call ptr @sim_wg_entry(ptr %ctx, i32 %kept)
  %in_place = icmp eq i32 %i, %kept
  %length = select i1 %in_place, i64 0, i64 {_ENTRY}
  call void @llvm.memcpy.p0.p0.i64(ptr %k, ptr %e, i64 %length, i1 false)
  %kept2 = add i32 %kept, 1
  br label %next
next:
  %kept1 = phi i32 [ %kept, %check ], [ %kept, %wrong ], [ %kept2, %keep ]
  %i1 = add i32 %i, 1
  br label %head
end:
  call void @sim_wg_set(ptr %ctx, i32 0, i32 %kept)
  ret void
}}
"""
