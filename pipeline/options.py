"""The options of a compilation: the same words in the API, on command lines and in torch.compile's `options=`."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from pipeline import logs
from pipeline.errors import OptionError
from pipeline.fusion_rules.rules import FusionRules
from pipeline.fusions import Fusion
from pipeline.runtime.weights.weight_source import RefreshMode

CAPTURE_MODES = ("export", "script")

#: What the operands of contractions are rounded to; `f32` for no rounding.
PRECISIONS = ("f32", "bf16")

#: What the weights of matrix products are rounded to; `f32` for no rounding.
WEIGHTS = ("f32", "int8", "int4")

#: The bits of a weight then.
WEIGHT_BITS = {"f32": 32, "int8": 8, "int4": 4}

#: What the data is rounded to that weights are multiplied with; `f32` for no rounding.
ACTIVATIONS = ("f32", "int8")

#: The results of a tile by Winograd's algorithm along each dim; 0 for direct convolutions alone.
WINOGRAD_TILES = (0, 2, 4)

#: What becomes of ops that cannot be lowered.
FALLBACKS = ("torch", "error")

#: Who sees to it that weights that have changed are prepared again: calls, or the user.
REFRESH_MODES = ("auto", "manual")

#: Whose random numbers a model draws: those of this package's generator, or PyTorch's own.
RANDOM_MODES = ("philox", "eager")

#: The stages after which a user's passes may run.
PASS_STAGES = ("linalg", "fused", "kernels")


#: What a pattern of names consists of; what names have besides is matched by `?`.
_NAME_PATTERN = re.compile(r"[\w.*?-]+")


def _usually_checked() -> bool:
    return os.environ.get("PIPELINE_CHECK", "0") not in ("", "0")


def _usual_fallback() -> str:
    return os.environ.get("PIPELINE_FALLBACK") or "torch"


@dataclass(frozen=True)
class Options:
    """What can be chosen about a compilation.

    Attributes:
        target: what to generate code for: `cpu`, `vulkan`, or `cuda:sm_90` and the like; see docs/gpu.md.
        cpu: the CPU: `native`, or a name such as `x86-64-v3` or `znver4`.
        capture: how a module is captured: `export`, or `script` to go through TorchScript.
        disable: names of passes that are left out.
        passes: pass pipelines of the user's that run after a stage: `{"linalg": "my-pass,cse"}`.
        cache: whether what was compiled before may be taken from the disk cache, and what is compiled kept there.
        profile: whether the code times its kernels in every call; `Executable.profile` sees to that by itself.
        num_threads: how many threads share the work of a kernel; None for what `PIPELINE_NUM_THREADS` or else OpenMP
            says. With 1 the code has no threads at all.
        precision: `f32`, or `bf16` to round the operands of matrix products and convolutions in f32 to bf16, which are
            added up in f32 by dot products of bf16, where the CPU has those; all else is computed in f32.
        weights: `f32`, or `int8` or `int4` to round the weights of matrix products in f32 to bytes or halves of bytes,
            which are prepared once and dequantized as they are read; see docs/quantization.md.
        group: how many weights of a column share a scale with `weights="int8"` or `"int4"`; None for all of them.
        zero_points: whether each column or group has a zero point, too, so that the steps of its integers lie between
            its smallest and its largest weight; with `weights="int8"` or `"int4"`.
        winograd: how many results a tile of a 3x3 convolution has along each dim by Winograd's algorithm: 2; 4, which
            multiplies less and errs one or two digits more; 0 for direct convolutions alone.
        tune: how many seconds may be spent on measuring variants of the kernels on this machine; the best are kept in
            the disk cache. With 0 nothing is measured, and what was kept earlier is used; with None all kernels have
            the schedules that analysis chooses, whatever is kept.
        activations: `f32`, or `int8` to round the data that weights are multiplied with to bytes, too, in each call,
            with a scale for each of its rows, so that products are those of bytes; with `weights="int8"` or `"int4"`.
        keep: names of weights, or of modules around them, that `weights` and `precision` leave as they are; `*` and `?`
            stand for any characters, as in `("lm_head", "layers.0.*")`.
        refresh: `auto`: a call after weights have changed prepares them again; `manual`: `Executable.refresh` does,
            and nobody changes weights without it, nor moves them but in memory.
        fusion_rules: what becomes one kernel: the name of a target that has a table (by default `target`), the path of
            a YAML file, or a `FusionRules`.
        fusions: ops that become groups of their own, in this order: what `pipeline.fuse_into` gives.
        fallback: what becomes of ops that cannot be lowered: `torch` runs them between compiled parts of the model, or
            `error`, which lists them; by default what `PIPELINE_FALLBACK` says, else `torch`. What is to be saved must
            be compiled with `error`.
        random: `philox`: random numbers are drawn in kernels, as functions of a seed that each call takes from torch's
            generator; `eager`: torch draws them between compiled parts of the model, the same ones as in eager mode.
        check: whether the program is interpreted after every pass on tensors, and the code run once, on the example
            arguments; a pass that changes the numbers beyond rounding is an error then. Slow, for tests; by default as
            `PIPELINE_CHECK` says, else not.
        verbose: whether the log `pipeline.compile` says what is done and how long it takes, whatever its level, on
            stderr if the program says nothing of logs; by default what `PIPELINE_VERBOSE` says. Else a terminal shows a
            bar from the third second on. For other logs see docs/logs.md.
    """

    target: str = "cpu"
    cpu: str = "native"
    capture: str = "export"
    disable: tuple[str, ...] = ()
    passes: Mapping[str, str] = field(default_factory=dict)
    cache: bool = True
    profile: bool = False
    num_threads: int | None = None
    precision: str = "f32"
    weights: str = "f32"
    group: int | None = None
    zero_points: bool = False
    activations: str = "f32"
    keep: tuple[str, ...] = ()
    winograd: int = 2
    tune: float | None = None
    refresh: RefreshMode = "auto"
    fusion_rules: str | FusionRules | None = None
    fusions: tuple[Fusion, ...] = ()
    fallback: str = field(default_factory=_usual_fallback)
    random: str = "philox"
    check: bool = field(default_factory=_usually_checked)
    verbose: bool = field(default_factory=logs.is_verbose)

    def unusual(self) -> dict[str, Any]:
        """Those options that have not their default, by name; but for the target."""
        usual = Options()
        values = {option.name: getattr(self, option.name) for option in fields(self) if option.name != "target"}
        return {name: value for name, value in values.items() if value != getattr(usual, name)}

    @staticmethod
    def create(values: Mapping[str, Any]) -> Options:
        """Options from keywords; raises `OptionError` for an unknown one or a value of the wrong form."""
        logs.set_up()
        known = [option.name for option in fields(Options)]
        for name in values:
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                hint = f", did you mean {near[0]!r}?" if near else f"; there are {', '.join(known)}"
                raise OptionError(f"unknown option {name!r}{hint}")
        checked = dict(values)
        for name in ("target", "cpu", "capture"):
            if name in checked and not isinstance(checked[name], str):
                raise OptionError(f"{name}: expected a string, got {type(checked[name]).__name__}")
        threads = checked.get("num_threads")
        if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
            raise OptionError(f"num_threads: expected a number from 1 or None, got {threads!r}")
        for name in ("cache", "profile", "zero_points", "check", "verbose"):
            if name in checked and not isinstance(checked[name], bool):
                raise OptionError(f"{name}: expected True or False, got {checked[name]!r}")
        if checked.get("capture", "export") not in CAPTURE_MODES:
            raise OptionError(f"capture={checked['capture']!r}: expected one of {', '.join(CAPTURE_MODES)}")
        tune = checked.get("tune")
        if tune is not None and (isinstance(tune, bool) or not isinstance(tune, (int, float)) or not tune >= 0):
            raise OptionError(f"tune: expected a number of seconds from 0 or None, got {tune!r}")
        if checked.get("precision", "f32") not in PRECISIONS:
            raise OptionError(f"precision={checked['precision']!r}: expected one of {', '.join(PRECISIONS)}")
        if checked.get("weights", "f32") not in WEIGHTS:
            raise OptionError(f"weights={checked['weights']!r}: expected one of {', '.join(WEIGHTS)}")
        _check_group(checked.get("group"), checked.get("weights", "f32"))
        if checked.get("zero_points") and checked.get("weights", "f32") == "f32":
            raise OptionError("zero_points=True: is for weights='int8' and weights='int4'")
        _check_activations(checked)
        if checked.get("refresh", "auto") not in REFRESH_MODES:
            raise OptionError(f"refresh={checked['refresh']!r}: expected one of {', '.join(REFRESH_MODES)}")
        if checked.get("winograd", 2) not in WINOGRAD_TILES or isinstance(checked.get("winograd"), bool):
            raise OptionError(f"winograd={checked['winograd']!r}: expected one of {str(WINOGRAD_TILES)[1:-1]}")
        if checked.setdefault("fallback", _usual_fallback()) not in FALLBACKS:
            raise OptionError(f"fallback={checked['fallback']!r}: expected one of {', '.join(FALLBACKS)}")
        if checked.get("random", "philox") not in RANDOM_MODES:
            raise OptionError(f"random={checked['random']!r}: expected one of {', '.join(RANDOM_MODES)}")
        checked["disable"] = _names(values.get("disable", ()))
        checked["keep"] = _kept(checked)
        checked["passes"] = _pipelines(values.get("passes", {}))
        checked["fusion_rules"] = _rules(values.get("fusion_rules"))
        checked["fusions"] = _fusions(values.get("fusions", ()))
        return Options(**checked)


def _check_group(group: Any, weights: str) -> None:
    if group is None:
        return
    if isinstance(group, bool) or not isinstance(group, int) or group < 2:
        raise OptionError(f"group: expected a number of weights from 2 or None, got {group!r}")
    if weights == "f32":
        raise OptionError(f"group={group}: there are groups of quantized weights only, such as weights='int8'")


def _check_activations(values: Mapping[str, Any]) -> None:
    rounded_to = values.get("activations", "f32")
    if rounded_to not in ACTIVATIONS:
        raise OptionError(f"activations={rounded_to!r}: expected one of {', '.join(ACTIVATIONS)}")
    if rounded_to != "f32" and values.get("weights", "f32") == "f32":
        raise OptionError(f"activations={rounded_to!r}: is for weights='int8' and weights='int4'")


def _kept(values: Mapping[str, Any]) -> tuple[str, ...]:
    kept = values.get("keep", ())
    is_list = isinstance(kept, (list, tuple)) and all(isinstance(name, str) for name in kept)
    if not is_list or not all(_NAME_PATTERN.fullmatch(name) for name in kept):
        raise OptionError(f"keep: expected a list of names of weights or modules, with * and ?, got {kept!r}")
    if kept and values.get("weights", "f32") == "f32" and values.get("precision", "f32") == "f32":
        raise OptionError("keep: nothing is rounded; it is for weights='int8', weights='int4' and precision='bf16'")
    return tuple(kept)


def _names(value: Any) -> tuple[str, ...]:
    if isinstance(value, (list, tuple, set, frozenset)) and all(isinstance(name, str) for name in value):
        return tuple(value)
    raise OptionError(f"disable: expected a list of pass names, got {value!r}")


def _pipelines(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(text, str) for text in value.values()):
        raise OptionError(f"passes: expected pass pipelines by stage, such as {{'linalg': 'cse'}}, got {value!r}")
    for stage in value:
        if stage not in PASS_STAGES:
            raise OptionError(f"passes: passes run after {', '.join(PASS_STAGES)}, not after {stage!r}")
    return dict(value)


def _rules(value: Any) -> str | FusionRules | None:
    if value is None or isinstance(value, (str, FusionRules)):
        return value
    if isinstance(value, Path):
        return str(value)
    raise OptionError(f"fusion_rules: expected the name of a target, a path or FusionRules, got {type(value).__name__}")


def _fusions(value: Any) -> tuple[Fusion, ...]:
    if isinstance(value, (list, tuple)) and all(isinstance(fusion, Fusion) for fusion in value):
        return tuple(value)
    raise OptionError(f"fusions: expected a list of what pipeline.fuse_into gives, got {value!r}")
