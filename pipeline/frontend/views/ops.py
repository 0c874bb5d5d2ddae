"""The two ops of torch that views are made of: `pipeline.collapse_shape` and `pipeline.expand_shape`.

They are in no program of a user's; `own_views` puts them into graphs after torch.export, and nothing runs them.
"""

from __future__ import annotations

import torch

_library = torch.library.Library("pipeline", "FRAGMENT")
_library.define("collapse_shape(Tensor x, int[] lengths) -> Tensor")
_library.define("expand_shape(Tensor x, int[] lengths, SymInt[] sizes, bool proved) -> Tensor")

#: Makes one dim of each run of dims; `lengths` has the number of dims of each run.
collapse_shape = torch.ops.pipeline.collapse_shape.default

#: Makes a run of dims of each dim, with the sizes in `sizes`; unless `proved`, they need not fit the data, by mistake
#: of the caller's.
expand_shape = torch.ops.pipeline.expand_shape.default
