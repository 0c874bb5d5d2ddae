"""The kinds of random programs: how one is drawn from a seed, and what is tried with several of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gpu_outcomes
import outcomes
import script_outcomes
from drawing import Draw
from norm_programs import norm_program
from op_gradients import gradient_sample, trained
from op_samples import as_is_and_symbolic, op_sample
from script_programs import LARGE as DEEP
from script_programs import SMALL as FLAT
from script_programs import script_program
from tensor_programs import LARGE, SYMBOLIC, draw_program


@dataclass(frozen=True)
class Kind:
    """A kind of programs.

    Attributes:
        draw: a program.
        attempt: the outcomes of some of them.
        together: how many are best tried at once.
    """

    draw: Callable[[Draw], Any]
    attempt: Callable[[Sequence[Any]], list[outcomes.Outcome]]
    together: int


KINDS = {
    "static": Kind(draw_program, outcomes.fused_and_unfused, 16),
    "symbolic": Kind(lambda draw: draw_program(draw, SYMBOLIC), outcomes.resized, 8),
    "passes": Kind(lambda draw: draw_program(draw, SYMBOLIC), outcomes.without_passes, 1),
    "gpus": Kind(lambda draw: draw_program(draw, SYMBOLIC), gpu_outcomes.resized, 2),
    "threads": Kind(lambda draw: draw_program(draw, LARGE), outcomes.on_threads, 8),
    "norms": Kind(norm_program, outcomes.fused, 6),
    "ops": Kind(op_sample, as_is_and_symbolic, 8),
    "gradients": Kind(gradient_sample, trained, 8),
    "branches": Kind(lambda draw: script_program(draw, FLAT), script_outcomes.fused_and_unfused, 10),
    "nested": Kind(lambda draw: script_program(draw, DEEP), script_outcomes.fused_and_unfused, 1),
}
