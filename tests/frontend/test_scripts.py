"""TorchScript as it is in the field: loaded, frozen and traced modules, state, and what its language has."""

from __future__ import annotations

import itertools
import math
import random
from typing import NamedTuple

import pytest
import torch
from torch import nn

import pipeline
from pipeline import CaptureError, PipelineError
from pipeline.frontend.capture.capture import export

X = torch.linspace(-1, 1, 12).reshape(3, 4)


def saved(script, folder):
    path = folder / "script.jit"
    torch.jit.save(script, path)
    return torch.jit.load(path)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU())
        self.blocks = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])
        self.register_buffer("shift", torch.arange(8.0))

    def forward(self, x):
        y = self.first(x)
        for block in self.blocks:
            y = torch.tanh(block(y)) + self.shift
        return y


FORMS = {
    "script": lambda model, folder: torch.jit.script(model),
    "trace": lambda model, folder: torch.jit.trace(model, X),
    "loaded": lambda model, folder: saved(torch.jit.script(model), folder),
    "loaded trace": lambda model, folder: saved(torch.jit.trace(model, X), folder),
    "frozen": lambda model, folder: torch.jit.freeze(torch.jit.script(model)),
    "loaded frozen": lambda model, folder: saved(torch.jit.freeze(torch.jit.script(model)), folder),
    "for inference": lambda model, folder: torch.jit.optimize_for_inference(torch.jit.script(model)),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_a_script(tmp_path, form):
    model = Net().eval().requires_grad_(False)
    script = FORMS[form](model, tmp_path)
    torch.testing.assert_close(pipeline.compile(script, (X,))(X), model(X))


def test_convolutions_for_inference():
    model = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.BatchNorm2d(8), nn.Hardswish(), nn.MaxPool2d(2), nn.Flatten())
    x = torch.randn(2, 3, 11, 13)
    script = torch.jit.optimize_for_inference(torch.jit.script(model.eval()))
    torch.testing.assert_close(pipeline.compile(script, (x,))(x), model(x))


def test_weights_of_a_loaded_script_are_live(tmp_path):
    script = saved(torch.jit.script(nn.Linear(4, 4)), tmp_path)
    exe = pipeline.compile(script, (X,))
    with torch.no_grad():
        script.weight.mul_(-3)
        exe.refresh()
        torch.testing.assert_close(exe(X), script(X))


class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        if x.sum() > 0:
            return self.layer(x) + torch.tensor([1.0, 2.0, 3.0, 4.0])
        return self.layer(x) * 2


def test_constants_in_branches_on_tensors():
    model = Frozen().eval().requires_grad_(False)
    exe = pipeline.compile(torch.jit.freeze(torch.jit.script(model)), (X,))
    for x in (X + 1, X - 1):
        torch.testing.assert_close(exe(x), model(x))


class Returns(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.register_buffer("count", torch.arange(3))

    def forward(self, x):
        return self.weight, self.count, x, torch.tensor([1.5, 2.5])


@pytest.mark.parametrize("form", ["module", "script", "frozen"])
def test_parameters_buffers_and_constants_are_returned(form, tmp_path):
    model = Returns().eval()
    given = model if form == "module" else FORMS[form](model, tmp_path)
    torch.testing.assert_close(pipeline.compile(given, (X,))(X), tuple(one.detach() for one in model(X)))


class Detector(nn.Module):
    """A detector of voices in small: state, a branch on the rate, nested modules with methods."""

    def __init__(self):
        super().__init__()
        self.low, self.high = Cell(4), Cell(4)
        self.state = torch.zeros(0)
        self.rate = 0

    @torch.jit.export
    def reset(self):
        self.state = torch.zeros(0)
        self.rate = 0

    def forward(self, x, rate: int):
        if rate not in [8000, 16000]:
            raise ValueError(f"rates are 8000 and 16000, not {rate}")
        if self.rate and self.rate != rate:
            self.reset()
        if not len(self.state):
            self.state = torch.zeros(x.shape[0], 4)
        if rate == 16000:
            out, self.state = self.high.step(x, self.state)
        else:
            out, self.state = self.low.step(x, self.state)
        self.rate = rate
        return out


class Cell(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.cell = nn.LSTMCell(width, width)

    def forward(self, x):
        return x

    @torch.jit.export
    def step(self, x, state):
        hidden, cell = self.cell(x, (state, state))
        return torch.sigmoid(hidden).mean(1), cell


@pytest.mark.parametrize("rate", [8000, 16000])
def test_state_goes_from_call_to_call(tmp_path, rate):
    one = saved(torch.jit.script(Detector().eval().requires_grad_(False)), tmp_path)
    other = torch.jit.load(tmp_path / "script.jit")
    one(X, rate), other(X, rate)
    exe = pipeline.compile(one, (X, rate))
    for number in range(3):
        torch.testing.assert_close(exe(X * number), other(X * number, rate))


def test_state_that_is_not_there_yet(tmp_path):
    script = torch.jit.script(Detector())
    with pytest.raises(CaptureError, match="self.state another size.*call the script once before"):
        pipeline.compile(script, (X, 8000))
    with pytest.raises(CaptureError, match="rates are 8000 and 16000, not 4000"):
        pipeline.compile(script, (X, 4000))


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * self.calls


def test_numbers_that_change_from_call_to_call():
    with pytest.raises(CaptureError, match="changes self.calls from 0 to 1"):
        pipeline.compile(torch.jit.script(Counter()), (X,))


class Pair(NamedTuple):
    first: torch.Tensor
    second: torch.Tensor


class Ignores(nn.Module):
    @torch.jit.ignore
    def twice(self, x):
        return x * 2

    @torch.jit.unused
    def never(self, x):
        return x.numpy()

    def forward(self, x):
        if x.dim() > 5:
            return self.never(x)
        pair = Pair(x, x + 1)
        return self.twice(pair.second) - pair.first


def test_methods_that_are_ignored():
    torch.testing.assert_close(pipeline.compile(torch.jit.script(Ignores()), (X,))(X), Ignores()(X))


@torch.jit.script
def powers(x, times: int = 2):
    y = x
    for i in range(times):
        y = y * x + i
    return y


@torch.jit.script
def numbers(x, n: int):
    y = x + math.sqrt(float(n)) + math.floor(2.7) + math.pi + math.log(2.0) + math.atan2(1.0, 2.0) + math.gcd(12, 8)
    y = y * (1.0 if math.isinf(float("inf")) else 0.0) + math.factorial(n) + math.fmod(7.5, 2.0)
    return y, math.ceil(0.5) + n


def test_numbers():
    torch.testing.assert_close(pipeline.compile(numbers, (X, 3))(X), numbers(X, 3))


def test_functions():
    torch.testing.assert_close(pipeline.compile(powers, (X,))(X), powers(X))
    torch.testing.assert_close(pipeline.compile(powers, (X, 3))(X), powers(X, 3))


def raising(*lines):
    """A function of x that has these lines, which may raise."""
    text = "".join(f"    {line}\n" for line in lines)
    return torch.jit.CompilationUnit(f"def f(x):\n    y = x + 1\n{text}    return y\n").f


#: What raises on values of a tensor: for all that are positive nothing does.
RAISING = {
    "assert": ("assert bool(x.sum() > 0), 'low'",),
    "torch._assert": ("torch._assert(bool((x > 0).all()), 'low')",),
    "raise": ("if bool(x.sum() < 0):", "    raise ValueError('low')"),
    "raise or else": ("if bool(x.sum() > 0):", "    y = y * 2", "else:", "    raise ValueError('l' + 'ow')"),
    "raise with a size": ("if bool(x.sum() < 0):", "    raise ValueError('low {}'.format(x.size(0)))"),
    "in a branch": (
        "if bool(x.max() < 0):",
        "    y = y * 2",
        "    if bool(x.min() < -1):",
        "        raise ValueError('low')",
    ),
    "in a loop": ("for i in range(3):", "    y = y + x", "    assert bool(y.sum() > 0), 'low'"),
    "in a loop on a tensor": (
        "while bool(y.sum().abs() < 100):",
        "    y = y * 2",
        "    assert bool(y.max() > 0), 'low'",
    ),
    "of a number": ("k = int(x[0, 0])", "if k < 0:", "    raise ValueError('low')"),
}


@pytest.mark.parametrize("name", RAISING)
def test_raise_and_assert_on_values_are_checks_of_the_call(name):
    script = raising(*RAISING[name])
    good, bad = X + 2, X - 3
    executable = pipeline.compile(script, (good,), fallback="error")
    torch.testing.assert_close(executable(good), script(good))
    with pytest.raises(torch.jit.Error):
        script(bad)
    with pytest.raises(PipelineError, match="^low"):
        executable(bad)
    torch.testing.assert_close(executable(good + 1), script(good + 1))


class Checked(nn.Module):
    """A model whose `check` may fail, in eager."""

    def __init__(self, check):
        super().__init__()
        self.check = check

    def forward(self, x):
        self.check(x)
        return x + 1


def assert_tensor(x):
    assert (x > 0).all(), "low"


def assert_bool(x):
    assert bool((x > 0).all()), "low"


def raise_on_bool(x):
    if bool(x.sum() < 0):
        raise ValueError("low")


@pytest.mark.parametrize(
    "check", [assert_tensor, assert_bool, raise_on_bool, lambda x: torch._assert((x > 0).all(), "low")]
)
def test_no_check_of_a_module_is_lost(check):
    """It is refused as the model is compiled, or fails at the call."""
    with pytest.raises(PipelineError, match="low|branches on the values of a tensor"):
        pipeline.compile(Checked(check), (X + 2,), fallback="error")(X - 3)


class Shifted(NamedTuple):
    first: torch.Tensor
    second: tuple[torch.Tensor, int]


class Pairs(nn.Module):
    def forward(self, x: torch.Tensor) -> Shifted:
        if bool(x.sum() > 0):
            return Shifted(x + 1, (x * 2, 3))
        return Shifted(x - 1, (x * 3, 4))


def test_named_tuples_are_named_tuples(tmp_path):
    script = torch.jit.script(Pairs())
    for form in (script, saved(script, tmp_path)):
        executable = pipeline.compile(form, (X,))
        for x in (X + 2, X - 2):
            result = executable(x)
            assert type(result).__name__ == "Shifted" and result._fields == ("first", "second")
            torch.testing.assert_close(tuple(result), tuple(script(x)))
        assert type(executable(X)) is type(executable(X))
    pipeline.compile(script, (X,), fallback="error").save(tmp_path / "pairs.pipeline")
    assert pipeline.load(tmp_path / "pairs.pipeline")(X.numpy()).second[1] == 4


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_scripts_with_several_forward_methods(kind, tmp_path):
    model, x = kind(4, 5).eval(), torch.randn(6, 2, 4)
    script = saved(torch.jit.script(model), tmp_path)
    torch.testing.assert_close(pipeline.compile(script, (x,), fallback="error")(x), model(x))
    state = torch.randn(1, 2, 5)
    hx = (state, state * 2) if kind is nn.LSTM else state
    torch.testing.assert_close(pipeline.compile(script, (x,), {"hx": hx})(x, hx=hx), model(x, hx))
    with pytest.raises(CaptureError, match="no forward method for these arguments, only forward__0"):
        pipeline.compile(script, (3,))


def test_a_script_without_forward():
    class Runs(nn.Module):
        @torch.jit.export
        def run(self, x: torch.Tensor):
            return x

    with pytest.raises(CaptureError, match="no forward method; its methods are run"):
        pipeline.compile(torch.jit.script(Runs()), (X,))


#: What a script may have, as lines that change the tensor y; `|` ends a line.
FEATURES = {
    "if on a size": "if x.size(0) > 2:|    y = y + 1",
    "if on a number": "if n == 2:|    y = y * 3|else:|    y = y - 1",
    "if on a tensor": "if bool(y.sum() > 0):|    y = y + 1|else:|    y = y - 1",
    "early return": "if n > 5:|    return x",
    "early return on a tensor": "if bool(x.sum() > 100):|    return x * 2",
    "assert": "assert x.dim() == 2, 'dims {}'.format(x.dim())",
    "raise": "if n < 0:|    raise ValueError('negative')",
    "always raises": "if n == 2:|    raise ValueError('two')",
    "raise on a tensor": "if bool(y.sum() > 1e9):|    raise ValueError('large')",
    "list": "many: List[Tensor] = []|for i in range(3):|    many.append(y + i)|y = torch.stack(many).sum(0)",
    "list pop": "many = [y, y + 1, y + 2]|y = many.pop() + many[0]|y = y + len(many[:1])",
    "list of ints": "sizes = [3, 1, 2]|sizes.sort()|sizes.insert(0, 5)|sizes.reverse()|y = y + sizes[0] + max(sizes)",
    "dict": "d = {'a': y, 'b': x}|d['c'] = y * 2|y = d['a'] + d['c']|if 'd' in d:|    y = d['d']",
    "dict get": "d = {'a': 1, 'b': 2}|got = d.get('a')|if got is not None:|    y = y + got|y = y + d.get('z', 7)",
    "dict items": "d = {'a': y, 'b': x}|for k, v in d.items():|    y = y + v",
    "delete": "d = {1: 2.0, 3: 4.0}|del d[1]|y = y * d[3]|y = y + len(d.keys())",
    "tuple": "t = (y, n, 'text')|a, b, c = t|y = a * b",
    "tuple slice": "t = (y, x, n)|a, b = t[:2]|y = a + b",
    "optional": "z: Optional[Tensor] = None|if n == 2:|    z = x|if z is not None:|    y = y + z",
    "isinstance": "z: Optional[int] = n|if isinstance(z, int):|    y = y + z",
    "while": "i = 0|while i < n:|    y = y * 2|    i += 1",
    "while on a tensor": "s = y.abs().sum()|while bool(s < 50):|    s = s * 2|y = y + s",
    "loop over a tensor": "for row in x:|    y = y + row",
    "break": "for i in range(9):|    if i == n:|        break|    y = y + i",
    "continue": "for i in range(4):|    if i == n:|        continue|    y = y + i",
    "nested": "for i in range(2):|    for j in range(i + 1):|        if j == 0:|            y = y + i",
    "in place": "z = y.clone()|z.add_(1)|z[0] = 0.0|z[:, 1] *= 2|y = z",
    "view": "z = y.clone().view(-1)|z[1:3].fill_(2.0)|y = z.view(3, 4)",
    "shapes": "b, c = x.shape|y = y.reshape(c, b).reshape(-1, c)",
    "min and max": "y = y + min(n, 3) - max(1.5, float(n)) + abs(-n)",
    "casts": "y = y + int(2.7) + float(n) + int(bool(n))",
    "item": "k = x[0, 0].item()|y = y + k",
    "int of a tensor": "k = int(x.abs().sum())|y = y + k",
    "dtype": "if x.dtype == torch.float32:|    y = y.to(torch.float64).to(x.dtype)",
    "device": "y = y + torch.zeros(4, device=x.device, dtype=x.dtype)",
    "string": "mode = 'a' + 'b'|if mode == 'ab' and mode.startswith('a'):|    y = y + len(mode.upper())",
    "join": "y = y + len('-'.join(['a', 'b'])) + len('a b c'.split(' ')) + ord('a')",
    "format": "text = '{} of {}'.format(n, 3)|y = y + len(text) + len(str(n))",
    "print": "print('values', n)",
    "enumerate": "for i, v in enumerate([1.0, 2.0]):|    y = y * v + i",
    "zip": "for a, b in zip([1, 2], [3, 4]):|    y = y + a * b",
    "comprehension": "y = y + sum([k * 2 for k in range(n)])",
    "range": "for i in range(5, 0, -2):|    y = y + i",
    "chunk": "a, b = torch.chunk(y, 2, 1)|y = torch.cat([b, a], 1)",
    "sorted": "values, indices = torch.sort(y, dim=1)|y = values + indices",
    "mask": "y = torch.where(y > 0, y, -y).masked_fill(x > 0.5, 0.0)",
    "ternary": "y = y + (1 if n > 1 else 2)|y = y * (2.0 if x.size(1) == 4 else 1.0)",
    "logic": "if n > 1 and not n == 3 or n in [7, 8]:|    y = y + 1",
    "numbers": "y = y + n // 2 + n % 2 + n ** 2 + (n << 1) + (n & 3) + divmod(7, 2)[0]",
    "scalar tensors": "s = torch.tensor(2.5)|y = y * s + torch.tensor([1, 2, 3, 4])",
    "inner list": "rows = [[1, 2], [3, 4]]|y = y + rows[1][0]",
    "list of a tensor": "k: List[float] = x[0].tolist()|y = y + len(k)",
    "size of a slice": "y = y[:, : x.size(1) - 1]|y = torch.nn.functional.pad(y, [0, 1])",
}

_HEAD = "def f(x, n: int):\n    y = x * 1.0\n"


def script_of(names):
    """A function with some features, one after the other; each has its own names."""
    lines = [line for name in names for line in FEATURES[name].split("|")]
    return torch.jit.CompilationUnit(_HEAD + "".join(f"    {line}\n" for line in lines) + "    return y\n").f


RANDOM = random.Random(0)
PROGRAMS = [(name,) for name in FEATURES] + RANDOM.sample(list(itertools.permutations(FEATURES, 2)), 150)

#: What has to be refused: the model raises whatever it is given.
REFUSED = {"always raises"}

#: So many of the programs are compiled and called, the others are only captured.
CALLED = 40


def test_no_exception_but_ours_leaves():
    """200 odd scripts: each gives eager's numbers, or is refused with one of our errors."""
    refused, unknown = set(), set()
    for number, names in enumerate(PROGRAMS):
        try:
            script = script_of(names)
        except RuntimeError:  # what TorchScript itself does not take, such as a variable of two types
            unknown.add(names)
            continue
        try:
            if number % (len(PROGRAMS) // CALLED):
                run = export(script, (X, 2)).module()
            else:
                run = pipeline.compile(script, (X, 2))
        except PipelineError as error:
            assert "\n" not in str(error)
            refused.add(names)
            continue
        torch.testing.assert_close(run(X, 2), script(X, 2), msg=str(names))
    assert len(PROGRAMS) - len(unknown) > 180
    assert all(len(names) == 2 for names in unknown)
    assert {names[0] for names in refused if len(names) == 1} == REFUSED
