"""Jobs on the machines of a cluster: each result once, whatever is lost; tuning and compiling many models with them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import ray
import torch
from torch import nn

import pipeline
from pipeline import timing
from pipeline.errors import OptionError
from pipeline.ir.schedule import DEFAULT, Schedule
from pipeline.ray import compile_all, tune
from pipeline.ray.crew import Crew, CrewJob
from pipeline.tuning.bench import Choice


def leave(folder, name):
    (Path(folder) / f"{name}-{uuid.uuid4().hex}").touch()


def times_left(folder):
    return Counter(file.name.rpartition("-")[0] for file in Path(folder).iterdir())


def fail(seconds):
    raise ValueError("this fails")


def end(folder, seconds):
    leave(folder, "end")
    os.kill(os.getpid(), signal.SIGKILL)


def wait(folder, seconds):
    leave(folder, "wait")
    time.sleep(seconds + 0.5)


def test_each_result_once_though_a_node_is_killed(cluster, node, tmp_path):
    work = node.in_the_middle()

    def square(number, seconds):
        leave(tmp_path, number)
        work()
        return number**2

    with Crew({}) as crew:
        (kind,) = crew.kinds
        crew.submit([CrewJob(str(number), kind, square, (number,)) for number in range(24)])
        results = list(crew.results())
    assert node.was_killed()
    assert sorted(done.value for done in results) == [number**2 for number in range(24)]
    assert {done.error for done in results} == {None}
    assert sorted(done.attempts for done in results)[-2:] == [1, 2]  # the job that the node had
    assert times_left(tmp_path) == {done.job.name: done.attempts for done in results}


def test_jobs_that_fail_end_their_process_or_find_no_machine(cluster, tmp_path):
    with Crew({"SAID": "once"}, retries=1, patience=0.5) as crew:
        (kind,) = crew.kinds
        elsewhere = type(kind)("another", kind.cpu, kind.features)
        jobs = [
            CrewJob("fails", kind, fail, ()),
            CrewJob("ends", kind, end, (tmp_path,)),
            CrewJob("nowhere", elsewhere, fail, ()),
            CrewJob("environment", kind, lambda seconds: os.environ["SAID"], ()),
        ]
        crew.submit(jobs)
        results = {done.job.name: done for done in crew.results()}
    assert results["fails"].error == "ValueError: this fails"
    assert results["environment"].value == "once"
    assert "it was begun 2 times, and each time its worker was lost" in results["ends"].error
    assert times_left(tmp_path)["end"] == 2
    assert results["nowhere"].error == f"there is no machine left that has another ({kind.cpu})"


def test_when_the_time_is_over_nothing_is_begun(cluster, tmp_path):
    with Crew({}, cores=1) as crew:
        (kind,) = crew.kinds
        crew.submit([CrewJob("start", kind, lambda seconds: None, ())])
        assert len(list(crew.results())) == 1
        crew.submit([CrewJob(f"wait {number}", kind, wait, (tmp_path,)) for number in range(9)])
        results = list(crew.results(2))
    assert 0 < len(results) == times_left(tmp_path)["wait"] < 9


def small():
    return nn.Sequential(nn.LayerNorm(48), nn.Softmax(-1)).eval().requires_grad_(False), (torch.ones(9, 48),)


def test_tuning_on_several_nodes(cluster, tmp_path, monkeypatch):
    def broken():
        raise ValueError("no such checkpoint")

    monkeypatch.setenv("PIPELINE_CACHE_SIZE", "0")
    url = str(tmp_path / "cache")
    first = tune({"small": small(), "other": small, "broken": broken}, 60, url=url, num_threads=1)
    assert len(first.choices) == 1 and first.waiting == 0, first  # equal kernels of two models are one
    ((kind, count),) = first.machines.items()
    assert count == len([node for node in ray.nodes() if node["Alive"]])
    assert first.errors == {f"capture broken for {kind}": "ValueError: no such checkpoint"}
    assert "1 kernels measured on" in str(first)
    monkeypatch.setenv("PIPELINE_CACHE_URL", url)
    exe = pipeline.compile(*small(), tune=0, num_threads=1)
    said = [remark.reason for remark in exe.remarks if remark.pass_name == "tune"]
    assert len(said) == 1 and "as measured before" in said[0]


def test_what_tune_and_compile_all_do_not_take(cluster, monkeypatch):
    monkeypatch.setenv("PIPELINE_CACHE_SIZE", "0")
    for call, message in [
        (lambda: tune({"small": small()}, 1), "kept nowhere"),
        (lambda: tune({"small": small()}, 0, url="x"), "seconds: expected a number above 0, got 0"),
        (lambda: tune({"small": 3}, 1, url="x"), r"small: expected \(model, args\)"),
        (lambda: compile_all({"small": small()}), "kept nowhere"),
        (lambda: compile_all({"small": small()}, url="x", speed=3), "unknown option 'speed'"),
        (lambda: compile_all({"small": small()}, url="nothing://x"), "nothing://x: expected a path, or a URL"),
    ]:
        with pytest.raises(OptionError, match=message):
            call()


def test_a_zoo_is_compiled_though_a_node_is_killed(cluster, node, tmp_path, monkeypatch):
    work, signs = node.in_the_middle(), tmp_path / "signs"
    signs.mkdir()

    def slow():
        leave(signs, "slow")
        work()
        return small()

    def broken():
        raise ValueError("no such checkpoint")

    url, models = str(tmp_path / "cache"), {f"slow {number}": slow for number in range(4)}
    results = compile_all({**models, "broken": broken}, url=url, artifacts=str(tmp_path / "artifacts"), num_threads=1)
    assert node.was_killed()
    assert sorted(one.name for one in results) == ["broken", *sorted(models)]
    by_name = {one.name: one for one in results}
    assert by_name.pop("broken").error == "ValueError: no such checkpoint"
    assert sorted(one.attempts for one in by_name.values()) == [1, 1, 1, 2]
    assert times_left(signs)["slow"] == 5
    model, args = small()
    for one in by_name.values():
        assert one.error is None and one.kernels
        loaded = pipeline.load(one.artifact)
        torch.testing.assert_close(torch.from_numpy(loaded(np.ones((9, 48), np.float32))), model(*args))
    monkeypatch.setenv("PIPELINE_CACHE_URL", url)
    with timing.collect() as times:
        exe = pipeline.compile(model, args, num_threads=1)
    assert times.find("machine code") is None  # it was taken from there
    torch.testing.assert_close(exe(*args), model(*args))


def test_a_board_of_measurements(monkeypatch):
    """The best part of a kernel is confirmed, and kept once; what is known is not measured again."""
    from pipeline.ray.crew import Done
    from pipeline.ray.tuning import _Board, best_of, confirmed
    from pipeline.tuning.cpu_kind import CpuKind
    from pipeline.tuning.measurement import Measurement, as_kept

    kept = {"known": b""}

    class Cache:
        def get(self, key):
            return kept.get(key)

        def put(self, key, value):
            assert key not in kept
            kept[key] = value

    kind = CpuKind("cpu", "x", "")
    variants = tuple(Schedule(rows=number) for number in range(1, 11))
    measurements = [
        Measurement(key, None, variants, operations) for key, operations in [("a", 1), ("b", 9), ("c", 5), ("known", 7)]
    ]
    board = _Board(Cache())
    board.plan(Done(CrewJob("one", kind, None, ()), measurements))
    board.plan(Done(CrewJob("other", kind, None, ()), measurements[:1]))
    jobs = board.jobs({})
    assert [job.arguments[0].key for job in jobs] == ["b"] * 3 + ["c"] * 3 + ["a"] * 3
    assert [len(job.arguments[1]) for job in jobs[:3]] == [4, 4, 2] and jobs[0].function is best_of
    fast, slow = Choice(Schedule(rows=7), 1.5), Choice(Schedule(rows=2), 1.2)
    assert board.take(Done(jobs[0], slow), {}) == board.take(Done(jobs[1], fast), {}) == []
    (again,) = board.take(Done(jobs[2], Choice()), {})
    assert again.function is confirmed and again.arguments[1] == fast
    assert board.take(Done(again, Choice(Schedule(rows=7), 1.4)), {}) == []
    for job in jobs[3:6]:  # no variant is faster
        assert board.take(Done(job, Choice()), {}) == []
    assert board.take(Done(jobs[6], None), {}) == [] and board.take(Done(jobs[7], error="lost"), {}) == []
    tuned = board.tuned({kind: 2})
    del kept["known"]
    assert tuned.waiting == 1 and len(tuned.errors) == 1
    assert {key: as_kept(data).schedule for key, data in kept.items()} == {"b": Schedule(rows=7), "c": DEFAULT}


CLAIM = """
import sys
from pipeline.ray.cores import claim
print(*claim(int(sys.argv[1])), flush=True)
sys.stdin.read()
"""


def test_processes_claim_different_cores(tmp_path):
    def start(count):
        arguments = [sys.executable, "-c", CLAIM, str(count)]
        environment = {**os.environ, "TMPDIR": str(tmp_path)}  # where nobody else claims any
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        return subprocess.Popen(arguments, env=environment, text=True, **pipes)

    cores = os.sched_getaffinity(0)
    processes = [start(1) for _ in range(len(cores) + 1)]
    claimed = [process.stdout.readline().split() for process in processes]
    for process in processes:
        process.communicate()
    found = [core for cores_of_one in claimed for core in cores_of_one]
    assert len(set(found)) == len(found) and {int(core) for core in found} <= cores
    assert len(found) in (0, len(cores)) or len(cores) == 1  # none where this process has a share of all
    process = start(len(cores))
    assert process.stdout.readline() == "\n"  # all of them need no claim
    process.communicate()
