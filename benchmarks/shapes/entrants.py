"""Who takes part in the sweep, and in which dtypes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from contestants import CONTESTANTS, Contestant, OpenVino


class _OpenVinoInBf16(OpenVino):
    """OpenVINO, which computes a model of f32 in bf16: it takes no tensors of bf16 from NumPy."""

    precision = "bf16"


@dataclass(frozen=True)
class Entrant:
    """A contestant of benchmarks/contestants.py in the sweep.

    Attributes:
        name: its name.
        by_dtype: the contestant for models of each dtype that it takes.
        takes_f32: whether it gets models of f32 whatever the dtype, and rounds them itself.
        in_inference_mode: whether it is called so; exporters cannot do with that.
    """

    name: str
    by_dtype: dict[str, Contestant]
    takes_f32: bool = False
    in_inference_mode: bool = False

    def contestant(self, dtype: str) -> Contestant:
        """The contestant for models of a dtype."""
        return self.by_dtype[dtype]

    def computes_in(self, dtype: str) -> str:
        """The dtype of the model that it gets."""
        return "f32" if self.takes_f32 else dtype


def _of_any(name: str, **options: Any) -> Entrant:
    return Entrant(name, dict.fromkeys(("f32", "bf16"), CONTESTANTS[name]), **options)


ENTRANTS = {
    one.name: one
    for one in (
        _of_any("eager", in_inference_mode=True),
        _of_any("pipeline"),
        _of_any("inductor", in_inference_mode=False),
        Entrant("onnxruntime", {"f32": CONTESTANTS["onnxruntime"]}),
        Entrant("openvino", {"f32": CONTESTANTS["openvino"], "bf16": _OpenVinoInBf16()}, takes_f32=True),
    )
}
