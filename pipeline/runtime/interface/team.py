"""The functions by which code has a team of threads share work: it defines them itself, and runs alone at first.

Whoever loads the code gives it OpenMP's functions by `USE_TEAM`, where there is an OpenMP.
"""

from __future__ import annotations

#: `void(GOMP_parallel, omp_get_thread_num, omp_get_num_threads, omp_get_max_threads)`: takes a team's functions.
USE_TEAM = "pipeline_use_team"

#: `void(int32_t)`: how many threads share the work of a kernel; 0, as at first, for as many as OpenMP says.
SET_THREADS = "pipeline_set_threads"

#: The functions of libgomp, in the order in which `USE_TEAM` takes them, and what code calls for each.
LIBGOMP = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads", "omp_get_max_threads")
PARALLEL, THREAD_NUM, NUM_THREADS, MAX_THREADS = OF_CODE = (
    "pipeline_parallel",
    "pipeline_thread_num",
    "pipeline_num_threads",
    "pipeline_max_threads",
)
