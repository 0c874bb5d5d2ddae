"""Models of the zoo run in bf16, by any of the ways to get there, and in f16, about as exactly as in eager.

Models lose the layers that repeat others first: those have the same kernels. Those that take long to compile run in
some of the forms; docs/models.md has all models in all of them.
"""

from __future__ import annotations

import pytest
import torch
from host import EAGERS_LSTM_IN_BF16, NO_LSTM
from precisions import FORMS, errors
from torch import nn
from zoo import ZOO

import pipeline

#: Those that are another one's configuration with other arguments.
AGAIN = ("gpt2-batch-2", "bert-dynamic-batch-length", "llama-dynamic-batch-length")

#: Those that are compiled fast enough to run in all forms, and what shows most in 16 bits.
IN_ALL_FORMS = (
    "vit",
    "clip-text",
    "unet",
    "gru",
    "mlp-dynamic-batch",
    "cnn-dynamic-batch-height-width",
    "attention-dynamic-batch-length",
)


#: The forms of the others, in turn.
SOME_FORMS = ((".bfloat16()", "autocast"), ('precision="bf16"', ".half()"))


def cases() -> list[tuple[str, str]]:
    """(model, form) of what is run."""
    names = [name for name in ZOO if name not in AGAIN]
    return [
        (name, form)
        for number, name in enumerate(names)
        for form in (FORMS if name in IN_ALL_FORMS else SOME_FORMS[number % 2])
    ]


def shorten(model: nn.Module) -> None:
    """Leaves one of the layers that are alike in each list of a model."""
    for module in model.modules():
        if not isinstance(module, nn.ModuleList):
            continue
        kept: dict[object, nn.Module] = {}
        for layer in module:
            kept.setdefault(_kind(layer), layer)
        del module[len(kept) :]
        for number, layer in enumerate(kept.values()):
            module[number] = layer


def _kind(layer: nn.Module) -> object:
    """What layers are alike by; a layer of MobileNet with another stride or width has no residual."""
    alike = getattr(layer, "use_residual", True)
    shapes = tuple(tuple(parameter.shape) for parameter in layer.parameters())
    return (type(layer), getattr(layer, "shift_size", None), shapes) if alike else id(layer)


@pytest.mark.parametrize(("name", "form"), cases())
def test_is_about_as_exact_as_eager(name: str, form: str) -> None:
    torch.set_num_threads(1)
    if (name, form) == ("lstm", "autocast") and not EAGERS_LSTM_IN_BF16:
        with pytest.raises(pipeline.CaptureError, match=NO_LSTM):  # which says what eager says
            errors(ZOO[name], FORMS[form], shorten)
        return
    ours, eagers = errors(ZOO[name], FORMS[form], shorten)
    if form == 'precision="bf16"':  # eager runs in f32 here; the yardstick is the model in bf16
        eagers = 2.0**-6
    assert ours <= 3 * eagers
