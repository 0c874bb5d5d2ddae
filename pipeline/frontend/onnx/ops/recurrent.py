"""LSTM, GRU and RNN: torch's own where they say the same, else steps over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from pipeline.frontend.onnx.call import NodeCall
from pipeline.frontend.onnx.ops.table import op

#: For each kind of cell, the gates of torch in places of ONNX's.
_GATES = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}

_DEFAULTS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}


@op("LSTM", "GRU", "RNN")
def recurrent(
    call: NodeCall,
    x: torch.Tensor,
    w: torch.Tensor,
    r: torch.Tensor,
    b: torch.Tensor | None = None,
    lengths: torch.Tensor | None = None,
    h: torch.Tensor | None = None,
    c: torch.Tensor | None = None,
    peepholes: torch.Tensor | None = None,
) -> tuple[Any, ...]:
    """[time, batch, features] → [time, directions, batch, hidden], and the last states."""
    kind, directions, hidden = call.node.op_type, w.shape[0], call.get("hidden_size", r.shape[2])
    if call.get("layout"):
        x, h, c = x.transpose(0, 1), _swapped(h), _swapped(c)
    batch = x.shape[1]
    h = torch.zeros((directions, batch, hidden), dtype=x.dtype) if h is None else h
    c = torch.zeros((directions, batch, hidden), dtype=x.dtype) if c is None else c
    b = torch.zeros((directions, 2 * w.shape[1]), dtype=x.dtype) if b is None else b
    is_plain = lengths is None and peepholes is None and _is_torch(call, kind, directions)
    results = (_by_torch if is_plain else _by_steps)(call, x, w, r, b, lengths, h, c, peepholes)
    results = list(results)[: 3 if kind == "LSTM" else 2]
    if call.get("layout"):
        results = [results[0].permute(2, 0, 1, 3), *(state.transpose(0, 1) for state in results[1:])]
    return tuple(results)


def _swapped(state: torch.Tensor | None) -> torch.Tensor | None:
    return None if state is None else state.transpose(0, 1)


def _is_torch(call: NodeCall, kind: str, directions: int) -> bool:
    """Whether torch has the same cell."""
    given = [name.capitalize() for name in call.get("activations") or []]
    plain = not given or given == _DEFAULTS[kind] * directions or (kind == "RNN" and given == ["Relu"] * directions)
    reset = kind != "GRU" or call.get("linear_before_reset")
    forwards = call.get("direction", "forward") != "reverse"
    return bool(plain and reset and forwards and not call.get("clip") and not call.get("input_forget"))


def _permuted(kind: str, weight: torch.Tensor) -> torch.Tensor:
    """Rows of gates in torch's order."""
    gates = weight.chunk(len(_GATES[kind]), 0)
    return torch.cat([gates[place] for place in _GATES[kind]], 0)


def _by_torch(call: NodeCall, x: Any, w: Any, r: Any, b: Any, lengths: Any, h: Any, c: Any, p: Any) -> Sequence[Any]:
    kind, directions = call.node.op_type, w.shape[0]
    weights: list[torch.Tensor] = []
    for at in range(directions):
        own, recurrent_bias = b[at].chunk(2, 0)
        weights += [_permuted(kind, each) for each in (w[at], r[at], own, recurrent_bias)]
    settings = (weights, True, 1, 0.0, False, directions == 2, False)
    if kind == "LSTM":
        y, *states = torch.lstm(x, [h, c], *settings)
    elif kind == "GRU":
        y, *states = torch.gru(x, h, *settings)
    else:
        relu = [name.capitalize() for name in call.get("activations") or []][:1] == ["Relu"]
        y, *states = (torch.rnn_relu if relu else torch.rnn_tanh)(x, h, *settings)
    return [y.reshape(*y.shape[:2], directions, -1).permute(0, 2, 1, 3), *states]


def _by_steps(call: NodeCall, x: Any, w: Any, r: Any, b: Any, lengths: Any, h: Any, c: Any, p: Any) -> Sequence[Any]:
    if not isinstance(x.shape[0], int):
        raise call.error("lengths, peepholes, clips and other activations need a number of steps that is not symbolic")
    ways = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[call.get("direction", "forward")]
    outputs = []
    for at, backwards in enumerate(ways):
        cell = _cell(call, at, len(ways), w[at], r[at], b[at], None if p is None else p[at])
        outputs.append(_direction(cell, x, h[at], c[at], lengths, backwards))
    ys, hs, cs = zip(*outputs, strict=True)
    return [torch.stack(ys, 1), torch.stack(hs), torch.stack(cs)]


def _direction(cell: Any, x: torch.Tensor, h: Any, c: Any, lengths: Any, backwards: bool) -> tuple[Any, Any, Any]:
    steps = x.shape[0]
    ys: list[Any] = [None] * steps
    for step in reversed(range(steps)) if backwards else range(steps):
        new_h, new_c = cell(x[step], h, c)
        if lengths is not None:
            inside = (lengths > step).unsqueeze(1)
            ys[step] = torch.where(inside, new_h, 0)
            new_h, new_c = torch.where(inside, new_h, h), torch.where(inside, new_c, c)
        else:
            ys[step] = new_h
        h, c = new_h, new_c
    return torch.stack(ys), h, c


def _cell(call: NodeCall, at: int, ways: int, w: Any, r: Any, b: Any, p: Any) -> Callable[..., Any]:
    """One step of a direction: (x, h, c) → (h, c)."""
    kind = call.node.op_type
    functions = _activations(call, kind, at, ways)
    clip = call.get("clip")
    bias, recurrent_bias = b.chunk(2, 0)

    def clipped(value: torch.Tensor) -> torch.Tensor:
        return value if not clip else value.clamp(-clip, clip)

    def rnn(x: Any, h: Any, c: Any) -> Any:
        return functions[0](clipped(x @ w.t() + h @ r.t() + bias + recurrent_bias)), c

    def gru(x: Any, h: Any, c: Any) -> Any:
        xz, xr, xh = (x @ w.t() + bias).chunk(3, 1)
        rz, rr, rh = r.chunk(3, 0)
        bz, br, bh = recurrent_bias.chunk(3, 0)
        z = functions[0](clipped(xz + h @ rz.t() + bz))
        reset = functions[0](clipped(xr + h @ rr.t() + br))
        inner = reset * (h @ rh.t() + bh) if call.get("linear_before_reset") else (reset * h) @ rh.t() + bh
        new = functions[1](clipped(xh + inner))
        return (1 - z) * new + z * h, c

    def lstm(x: Any, h: Any, c: Any) -> Any:
        i, o, f, g = (x @ w.t() + h @ r.t() + bias + recurrent_bias).chunk(4, 1)
        pi, po, pf = (0, 0, 0) if p is None else p.chunk(3, 0)
        i = functions[0](clipped(i + pi * c))
        f = 1 - i if call.get("input_forget") else functions[0](clipped(f + pf * c))
        new = f * c + i * functions[1](clipped(g))
        o = functions[0](clipped(o + po * new))
        return o * functions[2](new), new

    return {"RNN": rnn, "GRU": gru, "LSTM": lstm}[kind]


def _activations(call: NodeCall, kind: str, at: int, ways: int) -> list[Any]:
    names = call.get("activations") or _DEFAULTS[kind] * ways
    count = len(_DEFAULTS[kind])
    own = names[at * count : (at + 1) * count]
    alphas, betas = iter(call.get("activation_alpha") or []), iter(call.get("activation_beta") or [])
    return [_activation(call, name.lower(), alphas, betas) for name in own]


def _activation(call: NodeCall, name: str, alphas: Any, betas: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    plain = {"sigmoid": torch.sigmoid, "tanh": torch.tanh, "relu": torch.relu, "softplus": torch.nn.functional.softplus}
    plain["softsign"] = torch.nn.functional.softsign
    if name in plain:
        return plain[name]
    alpha = next(alphas, None)
    beta = next(betas, None)
    match name:
        case "affine":
            return lambda x: (1.0 if alpha is None else alpha) * x + (0.0 if beta is None else beta)
        case "leakyrelu":
            return lambda x: torch.nn.functional.leaky_relu(x, 0.01 if alpha is None else alpha)
        case "thresholdedrelu":
            return lambda x: torch.where(x > (1.0 if alpha is None else alpha), x, 0)
        case "scaledtanh":
            return lambda x: (1.0 if alpha is None else alpha) * torch.tanh((1.0 if beta is None else beta) * x)
        case "hardsigmoid":
            return lambda x: (x * (0.2 if alpha is None else alpha) + (0.5 if beta is None else beta)).clamp(0, 1)
        case "elu":
            return lambda x: torch.nn.functional.elu(x, 1.0 if alpha is None else alpha)
    raise call.error(f"the activation {name} is not supported")
