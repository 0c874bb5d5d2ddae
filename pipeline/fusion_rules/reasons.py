"""The reasons why two ops are not fused: a closed list, so that programs can rely on it and people can look them up.

docs/fusion.md has it as a table. Nothing here needs MLIR.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reason:
    """A reason.

    Attributes:
        key: what remarks call it.
        meaning: what is the case.
        change: what would change it.
    """

    key: str
    meaning: str
    change: str


@dataclass(frozen=True)
class Refusal:
    """Why one fusion is refused: the reason, and the facts of the case as the end of a sentence."""

    reason: Reason
    detail: str


MULTI_USE = Reason(
    "multi-use",
    "the producer has several users, and computing it again for each costs more than storing it",
    "use the value once, or compute it separately for each use if that is cheap",
)
SEVERAL_READS = Reason(
    "several-reads",
    "one consumer reads the producer in several ways, for example as it is and transposed",
    "read it in one way",
)
READS_AGAIN = Reason(
    "reads-again",
    "the consumer reads each element again and again, as a product or a convolution does",
    "nothing: the producer would be computed for each read",
)
COST = Reason(
    "cost",
    "each element would be computed several times, and that costs more than storing it",
    "broadcast before the costly op, not after it",
)
NOT_ELEMENTWISE = Reason(
    "not-elementwise",
    "the producer is not elementwise with one result",
    "nothing here: groups with an anchor take it, see form-groups",
)
SHAPE_MISMATCH = Reason(
    "shape-mismatch",
    "the two ops run over different sizes",
    "give both one shape: move the reshape, slice or broadcast before or behind both",
)
LOOP_BOUND = Reason(
    "loop-bound",
    "the producer's result alone says how often a loop of the consumer runs",
    "let another operand of the consumer have that dimension",
)
ANOTHER_BLOCK = Reason(
    "another-block",
    "the ops are in different blocks, for example one inside of a branch or a loop",
    "compute the producer in the block of the consumer",
)
SIDE_EFFECT = Reason(
    "side-effect",
    "an op between the two, or one of them, has an effect that must keep its place",
    "move the effect before or behind both",
)
CYCLE = Reason(
    "cycle",
    "an op that stays outside needs the one and is needed by the other",
    "fuse that op too, or compute it before both",
)
RULE = Reason(
    "rule",
    "the target's table of fusion rules does not allow it",
    "change the table: `pipeline-opt --print-fusion-rules=TARGET`, then `fusion_rules=FILE`",
)
OTHER_TARGET = Reason(
    "other-target",
    "the ops go by the tables of different targets",
    "give both the same target: `parts` of the FusionRules, or the attribute `pipeline.target`",
)
LIMIT = Reason(
    "limit",
    "the group would be larger than the table's limits",
    "raise the limit in the table of fusion rules",
)
BARRIER = Reason(
    "barrier",
    "a `pipeline.stop_fusion` stands between the two",
    "take the `pipeline.stop_fusion` away",
)
CLAIMED = Reason(
    "claimed",
    "one of the ops is in another group already, by another anchor or by a `fuse_into`",
    "a table of fusion rules that does not let it join there, or another predicate of that `fuse_into`",
)
NOT_TILED = Reason(
    "not-tiled",
    "the code generator cannot compute the ops of such a group tile by tile",
    "nothing in the model: a limit of the code generator",
)
DISABLED = Reason(
    "disabled",
    "the pass is disabled",
    "leave it out of `disable`",
)

#: All reasons by key.
REASONS = {
    reason.key: reason
    for reason in (
        MULTI_USE,
        SEVERAL_READS,
        READS_AGAIN,
        COST,
        NOT_ELEMENTWISE,
        SHAPE_MISMATCH,
        LOOP_BOUND,
        ANOTHER_BLOCK,
        SIDE_EFFECT,
        CYCLE,
        RULE,
        OTHER_TARGET,
        LIMIT,
        BARRIER,
        CLAIMED,
        NOT_TILED,
        DISABLED,
    )
}
