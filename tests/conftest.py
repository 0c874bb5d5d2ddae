"""Tests compile for themselves: what an earlier run left in the user's disk cache is not looked at."""

import os

os.environ["PIPELINE_CACHE_SIZE"] = "0"
