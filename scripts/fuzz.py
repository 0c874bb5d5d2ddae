"""Random programs against eager PyTorch, for as long as one likes: `scripts/fuzz.py --seconds 3600 --seed 0`.

A program is named by its kind and a number, so a run can be repeated and continued: it prints the seed that the next
run may start with. What fails is reduced to a short program and written to tests/regressions/ as a test. Kinds: static
shapes fused and unfused; symbolic shapes with several sizes; larger shapes on one and two threads; branches, loops and
writes in place.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
os.environ |= {"PIPELINE_CACHE_SIZE": "0", "PIPELINE_FALLBACK": "error"}  # as in tests: nothing from earlier, all by us
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("", "fuzz", "gpu")]

import tally  # noqa: E402  # it lies beside the tests
from drawing import Draw  # noqa: E402
from kinds import KINDS  # noqa: E402
from reduction import reduced  # noqa: E402
from workers import Worker  # noqa: E402

#: How many programs a worker gets at once.
_SHARE = 48

_TEST = '''"""Found by scripts/fuzz.py, {kind} {seed}: {what}."""

from drawing import Draw  # noqa: F401
from kinds import KINDS
from norm_programs import NormProgram, NormStep  # noqa: F401
from op_samples import OpSample  # noqa: F401
from script_programs import ScriptProgram  # noqa: F401
from tensor_programs import Input, Program, Step  # noqa: F401
import torch  # noqa: F401

PROGRAM = {program!r}


def test_gives_what_eager_gives():
    assert KINDS["{kind}"].attempt([PROGRAM]) == [("right", "")]
'''


def main() -> int:
    """Returns 1 if something failed."""
    options = _options()
    if options.total:
        print(tally.table(options.tally))
        return 0
    os.environ |= {"PIPELINE_CHECK": "1"} if options.check else {}  # which workers inherit
    commit = tally.commit() if options.tally else ""
    end, counts, failed = time.monotonic() + options.seconds, Counter[tuple[str, str]](), False
    following = dict.fromkeys(options.kinds, options.seed)
    with ThreadPoolExecutor(options.workers) as pool:
        workers = [Worker() for _ in range(options.workers)]
        running: dict[Future, tuple[Worker, str, int]] = {}
        while workers or running:
            while workers and time.monotonic() < end:
                kind = min(options.kinds, key=lambda one: following[one])
                worker, seed = workers.pop(), following[kind]
                following[kind] += _SHARE
                programs = [KINDS[kind].draw(Draw(number)) for number in range(seed, seed + _SHARE)]
                running[pool.submit(worker.outcomes, kind, programs)] = (worker, kind, seed)
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                worker, kind, seed = running.pop(future)
                workers.append(worker)
                outcomes = future.result()
                counts.update((kind, what) for what, _ in outcomes)
                if options.tally:
                    tally.append(options.tally, commit, kind, seed, outcomes)
                failed |= _report(worker, kind, seed, outcomes, options.write)
    print("\n".join(f"{kind:10} {what:8} {count}" for (kind, what), count in sorted(counts.items())))
    print(f"continue with --seed {max(following.values())}")
    return int(failed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60, help="after which no more programs are begun")
    parser.add_argument("--seed", type=int, default=0, help="the number of the first program of each kind")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--write", type=Path, default=ROOT / "tests" / "regressions", help="where tests are written")
    parser.add_argument("--check", action="store_true", help="interpret every program after every pass, too")
    parser.add_argument("--tally", type=Path, metavar="FILE", help="where the counts of every share are added")
    parser.add_argument("--total", action="store_true", help="add up the counts of --tally, and do nothing else")
    options = parser.parse_args()
    if options.total and not options.tally:
        parser.error("--total adds up what is in --tally")
    return options


def _report(worker: Worker, kind: str, seed: int, outcomes: list[tuple[str, str]], folder: Path) -> bool:
    """Reduces what failed and writes it down; returns whether something did."""
    failures = [(seed + n, what, text) for n, (what, text) in enumerate(outcomes) if what not in ("right", "refused")]
    for number, what, text in failures:
        print(f"{kind} {number} {what}: {text}", flush=True)
        short = reduced(KINDS[kind].draw(Draw(number)), lambda one, what=what: _what(worker, kind, one) == what)
        print(f"  reduced: {short}", flush=True)
        _write(folder / f"test_{kind}_{number}.py", kind, number, what, short)
    return bool(failures)


def _what(worker: Worker, kind: str, program: Any) -> str:
    return worker.outcomes(kind, [program])[0][0]


def _write(path: Path, kind: str, seed: int, what: str, program: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(_TEST.format(kind=kind, seed=seed, what=what, program=program))


if __name__ == "__main__":
    sys.exit(main())
