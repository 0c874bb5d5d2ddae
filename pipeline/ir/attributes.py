"""The names of the attributes that the frontend, passes and targets leave for each other, each with its meaning."""

from __future__ import annotations

# On modules.

#: The messages of the checks that the code makes as it runs; a failed one leaves its number, from 1 on, in `STATUS`.
CHECKS = "pipeline.checks"

#: What is timed: a name and a source line each, by number.
SITES = "pipeline.sites"

#: Not an attribute but a symbol: a global number of threads that the runtime sets; 0 for as many as OpenMP says.
TEAM_SIZE = "pipeline_threads"

# On the arguments of @main and @prepare: where they come from.

#: An argument of the call, by its number.
ARGUMENT = "pipeline.argument"

#: A tensor of the model, by its name.
WEIGHT = "pipeline.weight"

#: On a weight: the model writes to it, so that nothing is computed of it ahead.
MUTABLE = "pipeline.mutable"

#: On a weight that is a line of integers: some come more often than others, so that they tell no groups of one size.
UNEVEN = "pipeline.uneven"

#: A result of @prepare, by its number.
PREPARED = "pipeline.prepared"

#: Where a failed check leaves its number.
STATUS = "pipeline.status"

#: 64 bits that the call's random numbers are a function of.
SEED = "pipeline.seed"

#: The record of a profile.
PROFILE = "pipeline.profile"

#: The workspace; on a function: how many bytes it needs.
WORKSPACE = "pipeline.workspace"

#: Written to: the number of the result that is its new value.
UPDATED = "pipeline.updated"

#: In the place of that: the code writes the new value to the argument's memory itself.
IN_PLACE = "pipeline.in_place"

#: What an argument that is written to is called in remarks.
ARGUMENT_NAME = "pipeline.name"

# On @main and @prepare.

#: For each result where it goes, as in an `EntryPoint`.
PLACES_OF_RESULTS = "pipeline.places_of_results"

#: On a function with a workspace: how many bytes more that needs for each further thread of a team.
THREAD_BYTES = "pipeline.thread_bytes"

# On kernels of @prepare.

#: Where a kernel that only moves elements takes each from, whatever its tensors' shapes: text, equal for equal moves.
MOVE = "pipeline.move"

# On groups, and on kernels, which are functions.

#: The kind of a kernel: `matmul`, `elementwise`, ...
KERNEL = "pipeline.kernel"

#: The names of its ops, such as linalg.generic.
OPS = "pipeline.ops"

#: The names of what its ops compute, such as `add`.
WORDS = "pipeline.words"

#: What is chosen for it instead of what analysis would choose: a dictionary of numbers, see `pipeline.ir.schedule`.
SCHEDULE = "pipeline.schedule"

#: The function that is called in its place, its library (empty for a Python function), and the numbers that it takes at
#: the end.
CALLS = "pipeline.calls"

#: On a group that fuse-into made, and its kernel.
CUSTOM = "pipeline.custom"

#: On a kernel that is called: how many of its last arguments are what it writes.
OUTPUTS = "pipeline.outputs"

#: On a kernel that is called: the numbers of its arguments that it is not called with, sizes of what its own body kept.
SIZES = "pipeline.sizes"

#: On a kernel that is an attention, and on the dispatch that it becomes: blocks go over its keys.
STREAMED = "pipeline.streamed"

#: On a call of a kernel: what `origins` says of the ops of the kernel in that place.
ORIGINS = "pipeline.origins"

# On functions that kernels become.

#: On a function that runs the iterations of a loop from its first argument to its second: the loop's step. What calls
#: it may as well have threads share its iterations.
CHUNK = "pipeline.chunk"

#: On a chunk (see parallelize-kernels) whose threads need scratch of their own: its last two arguments are how many
#: threads there is scratch for, and the number of the thread that runs it.
NUMBERED = "pipeline.numbered"

#: On a kernel whose code other models may share: what its code is called.
SHARED = "pipeline.shared"

#: On a shared kernel, in LLVM dialect: the numbers of those of its arguments that its code takes.
TAKEN = "pipeline.taken"

#: On a shared kernel: how many bytes of the caller's workspace its code takes, and how many for each thread.
SCRATCH = "pipeline.scratch"

#: On a shared kernel that is declared alone: the numbers of the buffers that its code reads.
READ = "pipeline.read"

#: On a function that is one launch: the name of the kernel that it is a part of.
DISPATCH = "pipeline.dispatch"

#: On a dispatch: how many threads a block has.
BLOCK = "pipeline.block"

#: On a dispatch: of how many items a block takes care.
ITEMS = "pipeline.items"

#: On a dispatch: how many threads it needs; on an argument of it that says so where that is known at run time only.
THREADS = "pipeline.threads"

#: On a dispatch: how many bytes of shared memory it asks the driver for at each launch.
SHARED = "pipeline.shared"

# On ops.

#: On an scf.execute_region: it computes in AMX's tile registers, and is to be a function of its own.
AMX_BLOCK = "pipeline.amx_block"

#: Nothing that reads its results is fused with it.
STOP_FUSION = "pipeline.stop_fusion"

#: The target whose table of fusion rules it goes by, where that is not the table of the passes.
TARGET = "pipeline.target"

#: On a loop without results whose iterations write to different places: what about buffers that are made outside of
#: the loop. `tiles`, each iteration uses them as scratch of its own; `places`, they are written as anything else.
PARALLEL = "pipeline.parallel"

TILES, PLACES = "tiles", "places"

#: On loops over lines, which do not depend on each other; GPUs give each a thread.
LINES = "pipeline.lines"

#: On a loop along a line that carries what its elements so far have been combined to, and writes that to places that
#: nothing reads but the same step, if any does.
SCAN = "pipeline.scan"

#: On a linalg.generic that a library computes, and on the dispatch that does it otherwise: "f32", or "tf32".
GEMM = "pipeline.gemm"

#: On a convolution whose last input is its weight, transformed for tiles of so many results.
WINOGRAD = "pipeline.winograd"

#: On a convolution whose weight is zero where it was filled up: three numbers for each pair of its dims, the dim of the
#: taps of a phase, that of the phases, and how many elements the two have together that are not filled up.
TAPS = "pipeline.taps"

#: On a sum that is a Fourier transform: a dictionary of the attributes of `Transform` that shapes do not tell.
TRANSFORM = "pipeline.transform"
