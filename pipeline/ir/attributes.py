"""The names of the attributes that passes leave for each other on ops, kernels and arguments, each with its meaning."""

from __future__ import annotations

#: On a group and its kernel: the function that is called in its place, its library (empty for a Python function), and
#: the numbers that it takes at the end.
CALLS = "pipeline.calls"

#: On a group that fuse-into made, and its kernel.
CUSTOM = "pipeline.custom"

#: On a kernel that is called: how many of its last arguments are what it writes.
OUTPUTS = "pipeline.outputs"

#: The numbers of its arguments that it is not called with: sizes of what its own body kept.
SIZES = "pipeline.sizes"

#: The attribute of a loop without results whose iterations write to different places. Its value says what about
#: buffers that are made outside of the loop: `tiles`, each iteration uses them as scratch of its own; `places`, they
#: are written as anything else.
PARALLEL = "pipeline.parallel"

TILES, PLACES = "tiles", "places"

#: The attribute of a function that runs the iterations of a loop from its first argument to its second, with the
#: loop's step as its value; what calls it may as well have threads share its iterations.
CHUNK = "pipeline.chunk"

#: Marks loops over lines, which do not depend on each other; GPUs give each a thread.
LINES = "pipeline.lines"

#: Marks a function that is one launch; its value is the name of the kernel that it is a part of.
DISPATCH = "pipeline.dispatch"

#: Marks the argument of a dispatch that says how many threads it needs, where that is known at run time only.
THREADS = "pipeline.threads"

#: Marks a kernel that is an attention, and the dispatch that it becomes: blocks go over its keys.
STREAMED = "pipeline.streamed"

#: The attribute of a function's argument that is its workspace, and of a function: how many bytes it needs.
WORKSPACE = "pipeline.workspace"

#: The attribute of a function with a workspace: how many bytes more that needs for each further thread of a team.
THREAD_BYTES = "pipeline.thread_bytes"

#: The attribute of a chunk (see parallelize-kernels) whose threads need scratch of their own: its last two arguments
#: are how many threads there is scratch for, and the number of the thread that runs it.
NUMBERED = "pipeline.numbered"

#: The attribute of a function's argument that is the record of a profile.
PROFILE = "pipeline.profile"

#: The attribute of a module that lists what is timed: a name and a source line each, by number.
SITES = "pipeline.sites"

#: Marks a linalg.generic that a library computes, and the dispatch that does it otherwise: "f32", or "tf32".
GEMM = "pipeline.gemm"

#: What tells that the last input of a convolution is its weight, transformed for tiles of so many results.
WINOGRAD = "pipeline.winograd"

#: What tells that a weight is zero where it was filled up: for each of its dims, how many elements the dim and the one
#: behind it have together that are not; 0 for dims that were not filled up.
TAPS = "pipeline.taps"

#: Not an attribute but a symbol: a global number of threads that the runtime sets; 0 for as many as OpenMP says.
TEAM_SIZE = "pipeline_threads"

#: The mark of an argument whose new value is a result, with the result's number.
UPDATED = "pipeline.updated"

#: In the place of that mark: the code writes the new value to the argument's memory itself.
IN_PLACE = "pipeline.in_place"

#: The attribute of an entry that says for each of its results where it goes, as in an `EntryPoint`.
PLACES_OF_RESULTS = "pipeline.places_of_results"

#: What such an argument is called in remarks.
ARGUMENT_NAME = "pipeline.name"

#: On a call of a kernel: what `origins` says of the ops of the kernel in that place.
ORIGINS = "pipeline.origins"

#: The mark of such an op: a dictionary of the attributes of `Transform` that shapes do not tell.
TRANSFORM = "pipeline.transform"
