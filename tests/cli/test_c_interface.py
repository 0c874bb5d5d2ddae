"""Models in C and C++ programs: what the header's functions compute, what they refuse, two models in one program."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

import pipeline
from pipeline.tools import compile as compile_driver
from pipeline.tools.c_interface.names import Names, prefix_of

MODELS = '''
import torch
from torch.export import Dim


class Layers(torch.nn.Module):
    """Prepared weights, threads, and a name that C++ has taken."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = torch.nn.Linear(133, 240), torch.nn.Linear(240, 57)

    def forward(self, int):
        return torch.softmax(self.second(torch.relu(self.first(int))), -1)


def layers():
    return Layers().eval().requires_grad_(False), (torch.linspace(-1, 1, 205 * 133).view(205, 133),)


class Counter(torch.nn.Module):
    """A state, an argument that is written to, sizes that agree, a check, results of all kinds."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x, y, ids, n):
        self.total.add_(x.sum(0))
        y.mul_(2)
        return {
            "sum": self.total * 1, "picked": x[ids], "where": torch.nonzero(x > 0), "same": y,
            "none": None, "number": ids.sum().item(), "turned": (x + n).transpose(0, 1),
            "fft": torch.fft.fft(x), "half": y.bfloat16(),
        }


class Shared(torch.nn.Module):
    """Results that lie in the memory of what an argument is updated by, and tensors that may be empty."""

    def forward(self, x, w):
        old = x.clone()
        x.mul_(2)
        return old.view(-1), x.view(-1), w + 1


def shared():
    rows, columns = Dim("rows", max=9), Dim("columns", max=50_000)
    shapes = ({0: rows}, {1: columns})
    return {"model": Shared(), "args": (torch.ones(2, 3), torch.ones(2, 4)), "kwargs": {}, "dynamic_shapes": shapes}


def counter():
    rows = Dim("rows", min=2, max=50)
    args = (torch.ones(4, 3), torch.ones(5), torch.tensor([0, 2]), 7)
    shapes = ({0: rows}, None, None, None)
    return {"model": Counter(), "args": args, "kwargs": {}, "dynamic_shapes": shapes}
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The two models, one as a shared object with its weights, one as an object file with a file of weights."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "models.py").write_text(MODELS)
    emit(folder, "layers", "so", "layers.so")
    emit(folder, "counter", "obj", "counter.o", "--weights-beside")
    return folder


def emit(folder, factory, kind, name, *options):
    model = f"{folder / 'models.py'}:{factory}"
    assert compile_driver.main([model, f"--emit={kind}", "-o", str(folder / name), *options]) == 0


def model_of(factory):
    scope = {}
    exec(MODELS, scope)
    made = scope[factory]()
    return made["model"] if isinstance(made, dict) else made[0]


def run(folder, name, source, *arguments, compiler="c++"):
    """What a program prints; it is compiled with all warnings as errors."""
    (folder / name).write_text(source)
    standard = "-std=c++17" if compiler == "c++" else "-std=c11"
    options = [standard, "-Wall", "-Wextra", "-Werror", "-O1"]
    libraries = [entry for entry in ("./layers.so", "./counter.o", "./shared.o") if entry[2:-2].strip(".") in source]
    command = [compiler, *options, name, *libraries, "-lm", "-lgcc_s", "-Wl,-rpath,$ORIGIN", "-o", "program"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run(["./program", *arguments], cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


LAYERS = """
#include <thread>
#include <vector>
#include "layers.h"

int main() {
  std::vector<float> x(205 * 133);
  for (size_t i = 0; i < x.size(); ++i) x[i] = -1 + 2 * (float)i / (float)(x.size() - 1);
  int64_t in[] = {205, 133}, out[] = {205, 57};
  DLTensor input = {x.data(), {1, 0}, 2, {2, 32, 1}, in, nullptr, 0};
  std::vector<float> results[3];
  auto work = [&](int number) {
    layers model;
    if (layers_open(&model)) return;
    model.threads = number;
    results[number].resize(205 * 57);
    DLTensor output = {results[number].data(), {1, 0}, 2, {2, 32, 1}, out, nullptr, 0};
    if (layers_run(&model, &input, &output)) fprintf(stderr, "%s\\n", model.error);
    layers_close(&model);
  };
  std::thread other(work, 0);
  work(1);
  work(2);
  other.join();
  if (results[0] != results[1] || results[1] != results[2]) return 1;
  FILE *file = fopen("layers.out", "wb");
  fwrite(results[0].data(), 4, results[0].size(), file);
  fclose(file);
}
"""


def test_a_program_in_cpp_with_threads_of_its_own(folder):
    run(folder, "layers.cpp", LAYERS)
    x = torch.linspace(-1, 1, 205 * 133).view(205, 133)
    got = np.fromfile(folder / "layers.out", np.float32).reshape(205, 57)
    np.testing.assert_allclose(got, model_of("layers")(x).numpy(), rtol=1e-4, atol=1e-6)


COUNTER = """
#include "counter.h"

static void print(const char *name, const float *data, int64_t count) {
  printf("%s:", name);
  for (int64_t i = 0; i < count; ++i) printf(" %g", data[i]);
  printf("\\n");
}

int main(void) {
  counter model;
  DLDevice cpu = {1, 0};
  DLDataType f32 = {2, 32, 1}, i64 = {0, 64, 1}, c64 = {5, 64, 1}, bf16 = {4, 16, 1};
  int64_t xs[] = {2, 3}, three[] = {3}, five[] = {5}, two[] = {2}, where_shape[2], fs[2];
  int64_t ps[] = {2, 3}, turned_shape[2];
  int64_t strides[] = {3, 1};
  float x[] = {1, -2, 3, 4, 5, -6}, y[] = {1, 2, 3, 4, 5}, sum[3], picked[6];
  int64_t ids[] = {1, 0}, number = 0;
  uint16_t half[5];
  DLTensor tx = {x, cpu, 2, f32, xs, strides, 0}, ty = {y, cpu, 1, f32, five, NULL, 0};
  DLTensor tids = {ids, cpu, 1, i64, two, NULL, 0};
  DLTensor tsum = {sum, cpu, 1, f32, three, NULL, 0}, tpicked = {picked, cpu, 2, f32, ps, NULL, 0};
  DLTensor twhere = {NULL, cpu, 2, i64, where_shape, NULL, 0}, tnumber = {&number, cpu, 0, i64, NULL, NULL, 0};
  DLTensor tturned = {NULL, cpu, 2, f32, turned_shape, NULL, 0}, tfft = {NULL, cpu, 2, c64, fs, NULL, 0};
  DLTensor thalf = {half, cpu, 1, bf16, five, NULL, 0};
#define RUN() counter_run(&model, &tx, &ty, &tids, &tsum, &tpicked, &twhere, &tnumber, &tturned, &tfft, &thalf)
  if (counter_open(&model, "absent") == 0) return 1;
  printf("%s\\n", model.error);
  counter_close(&model);
  if (counter_open(&model, "counter.h") == 0) return 1;
  printf("%s\\n", model.error);
  if (counter_open(&model, "counter.weights")) return 1;
  for (int round = 0; round < 2; ++round) {
    if (RUN()) return printf("%s\\n", model.error), 1;
    print("sum", sum, 3);
    print("picked", picked, 6);
    print("y", y, 5);
    printf("where %d x %d:", (int)twhere.shape[0], (int)twhere.shape[1]);
    for (int i = 0; i < 2 * (int)twhere.shape[0]; ++i) printf(" %d", (int)((int64_t *)twhere.data)[i]);
    printf("\\nnumber: %d\\n", (int)number);
    printf("turned %d x %d\\n", (int)tturned.shape[0], (int)tturned.shape[1]);
    print("turned", (float *)tturned.data, 6);
    print("fft", (float *)tfft.data, 6);
    printf("half: %x\\n", half[1]);
    free(twhere.data), free(tturned.data), free(tfft.data);
  }
  ids[1] = 5;
  printf("%d %s\\n", RUN(), model.error);
  ids[1] = 0;
  xs[0] = 51;
  printf("%d %s\\n", RUN(), model.error);
  xs[0] = 2, xs[1] = 4;
  printf("%d %s\\n", RUN(), model.error);
  xs[1] = 3, strides[0] = 1, strides[1] = 2;
  printf("%d %s\\n", RUN(), model.error);
  strides[0] = 3, strides[1] = 1, tx.dtype.bits = 64;
  printf("%d %s\\n", RUN(), model.error);
  tx.dtype.bits = 32, tx.device.device_type = 2;
  printf("%d %s\\n", RUN(), model.error);
  tx.device.device_type = 1, tx.data = NULL;
  printf("%d %s\\n", RUN(), model.error);
  tx.data = x, thalf.data = NULL;
  printf("%d %s\\n", RUN(), model.error);
  counter_close(&model);
  return 0;
}
"""


def test_a_program_in_c_with_a_state_and_errors(folder):
    said = run(folder, "counter.c", COUNTER, compiler="cc").splitlines()
    assert said[:2] == [
        "absent: cannot be opened",
        "counter.h: is not the file of this model's weights",
    ]
    model, x, y = model_of("counter"), torch.tensor([[1.0, -2, 3], [4, 5, -6]]), torch.arange(1.0, 6)
    lines = []
    for _ in range(2):
        found = model(x, y, torch.tensor([1, 0]), 7)
        lines += [numbers("sum", found["sum"]), numbers("picked", found["picked"]), numbers("y", y)]
        places = found["where"]
        lines += [f"where {len(places)} x 2: {' '.join(str(int(n)) for n in places.reshape(-1))}", "number: 1"]
        lines += ["turned 2 x 3", numbers("turned", found["turned"].t()), None]
        lines += [f"half: {found['half'].view(torch.int16)[1].item():x}"]
    got = said[2 : 2 + len(lines)]
    spectrum = torch.view_as_real(torch.fft.fft(x))[0].reshape(-1)
    for line, wanted in zip(got, lines, strict=True):
        if wanted is None:
            np.testing.assert_allclose(np.array(line.split()[1:], float), spectrum, atol=1e-4)
        else:
            assert line == wanted
    index, size, *others = said[2 + len(lines) :]
    assert index.startswith("-1 counter: index out of range (at ")
    assert size.startswith("-1 the size ") and size.endswith(" is 51, expected 0 to 50")
    assert [re.sub(r"s\d+", "s0", line) for line in others] == [
        "-1 x: expected float32[s0, 3], got float32[2, 4]",
        "-1 x: is not row-major; pass a copy that is",
        "-1 x: expected float32[s0, 3], got float64[2, 3]",
        "-1 x: expected a tensor on the CPU",
        "-1 x: has no data",
        "-1 result_half: has no data",
    ]


def numbers(name, values):
    return f"{name}: {' '.join(f'{value:g}' for value in values.reshape(-1).tolist())}"


SHARED = """
#include "shared.h"

int main(void) {
  shared model;
  DLDevice cpu = {1, 0};
  DLDataType f32 = {2, 32, 1};
  int64_t xs[] = {2, 3}, ws[] = {2, 0}, shapes[3][2];
  float x[] = {1, 2, 3, 4, 5, 6};
  DLTensor tx = {x, cpu, 2, f32, xs, NULL, 0}, tw = {NULL, cpu, 2, f32, ws, NULL, 0}, results[3];
  memset(results, 0, sizeof results);
  for (int i = 0; i < 3; ++i) results[i].shape = shapes[i];
  if (shared_open(&model)) return 1;
  for (int round = 0; round < 3; ++round) {
    if (shared_run(&model, &tx, &tw, results, results + 1, results + 2)) return printf("%s\\n", model.error), 1;
    for (int i = 0; i < 3; ++i) {
      for (int64_t place = 0; place < results[i].shape[0] * (i < 2); ++place)
        printf("%g ", ((float *)results[i].data)[place]);
      free(results[i].data);
    }
    printf("| %d\\n", (int)x[5]);
    if (round == 1) xs[0] = 0;
  }
  tx.shape = NULL;
  printf("%d %s\\n", shared_run(&model, &tx, &tw, results, results + 1, results + 2), model.error);
  shared_close(&model);
  return 0;
}
"""


def test_results_that_share_memory_and_empty_tensors(folder):
    emit(folder, "shared", "obj", "shared.o")
    said = run(folder, "shared.c", SHARED, compiler="cc").splitlines()
    assert said == [
        "1 2 3 4 5 6 2 4 6 8 10 12 | 12",
        "2 4 6 8 10 12 4 8 12 16 20 24 | 24",
        "| 24",
        "-1 x: has no shape",
    ]


def test_prefixes():
    files = ("net.so", "2.o", "double.so", "read.so", "index.o", "my net.so")
    assert list(map(prefix_of, files)) == ["net", "model_2", "model_double", "model_read", "model_index", "my_net"]


BOTH = """
#include "counter.h"
#include "layers.h"

int main() {
  counter first;
  layers second;
  if (counter_open(&first, "counter.weights") || layers_open(&second)) return 1;
  counter_close(&first);
  layers_close(&second);
}
"""


def test_the_example(tmp_path, capsys):
    example = Path(pipeline.__file__).parent.parent / "examples" / "c"
    assert (
        compile_driver.main([str(example / "net.py"), "--emit=so", "--prepacked", "-o", str(tmp_path / "net.so")]) == 0
    )
    command = [
        "c++",
        "-Wall",
        "-Werror",
        example / "program.cpp",
        "net.so",
        "-I.",
        "-Wl,-rpath,$ORIGIN",
        "-o",
        "program",
    ]
    subprocess.run(command, cwd=tmp_path, check=True)
    said = subprocess.run([tmp_path / "program"], check=True, capture_output=True, text=True).stdout
    scope = {}
    exec((example / "net.py").read_text(), scope)
    model, _ = scope["model"]()
    wanted = model(torch.tensor([[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1]]))
    np.testing.assert_allclose(np.array(said.split(), float).reshape(3, 2), wanted.numpy(), atol=1e-4)


def test_weights_of_another_compilation(folder, tmp_path):
    damaged = bytearray((folder / "counter.weights").read_bytes())
    damaged[5] ^= 1
    (folder / "other.weights").write_bytes(damaged)
    said = run(folder, "other.c", OTHER, compiler="cc")
    assert said == "other.weights: has the weights of another compilation\n"


OTHER = """
#include "counter.h"

int main(void) {
  counter model;
  int failed = counter_open(&model, "other.weights");
  printf("%s\\n", model.error);
  counter_close(&model);
  return !failed;
}
"""


def test_two_models_in_one_program(folder):
    run(folder, "both.cpp", BOTH)


def test_names():
    names = Names()
    taken = [names.take(path) for path in ("x", "batch['ids']", "x", "int", "result[0]", "0", "size_s0", "model")]
    assert taken == ["x", "batch_ids", "p_x", "p_int", "result_0", "x0", "p_size_s0", "p_model"]
