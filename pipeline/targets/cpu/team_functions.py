"""What code calls to have a team of threads share work: OpenMP's functions where there are some, else one thread.

See `pipeline.runtime.interface.team`.
"""

from __future__ import annotations

from pipeline.ir.attributes import TEAM_SIZE
from pipeline.runtime.interface.team import MAX_THREADS, NUM_THREADS, PARALLEL, SET_THREADS, THREAD_NUM, USE_TEAM

_TEXT = """
@pipeline_team = internal global [4 x ptr] zeroinitializer

define void @{use_team}(ptr %parallel, ptr %thread_num, ptr %num_threads, ptr %max_threads) {{
  store ptr %parallel, ptr @pipeline_team
  store ptr %thread_num, ptr getelementptr ([4 x ptr], ptr @pipeline_team, i64 0, i64 1)
  store ptr %num_threads, ptr getelementptr ([4 x ptr], ptr @pipeline_team, i64 0, i64 2)
  store ptr %max_threads, ptr getelementptr ([4 x ptr], ptr @pipeline_team, i64 0, i64 3)
  ret void
}}

define void @{set_threads}(i32 %number) {{
  store i32 %number, ptr @{threads}
  ret void
}}

define void @{parallel}(ptr %share, ptr %data, i32 %count, i32 %flags) {{
  %function = load ptr, ptr @pipeline_team
  %is_absent = icmp eq ptr %function, null
  br i1 %is_absent, label %alone, label %together
alone:
  call void %share(ptr %data)
  ret void
together:
  call void %function(ptr %share, ptr %data, i32 %count, i32 %flags)
  ret void
}}
"""

_NUMBER = """
define i32 @{name}() {{
  %function = load ptr, ptr getelementptr ([4 x ptr], ptr @pipeline_team, i64 0, i64 {place})
  %is_absent = icmp eq ptr %function, null
  br i1 %is_absent, label %alone, label %together
alone:
  ret i32 {otherwise}
together:
  %number = call i32 %function()
  ret i32 %number
}}
"""


def team_functions() -> str:
    """The functions as LLVM IR, to be put behind a module that defines the number of threads."""
    text = _TEXT.format(use_team=USE_TEAM, set_threads=SET_THREADS, parallel=PARALLEL, threads=TEAM_SIZE)
    numbers = ((THREAD_NUM, 1, 0), (NUM_THREADS, 2, 1), (MAX_THREADS, 3, 1))
    return text + "".join(_NUMBER.format(name=name, place=place, otherwise=value) for name, place, value in numbers)
