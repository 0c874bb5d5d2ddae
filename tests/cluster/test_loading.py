"""pipeline.ray and the package ray: which is which, when it is loaded, and what there is without it."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys

class NoRay:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "ray":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

if sys.argv[1] == "without":
    sys.meta_path.insert(0, NoRay())
    import importlib.util
    found = importlib.util.find_spec
    importlib.util.find_spec = lambda name, package=None: None if name == "ray" else found(name, package)
import pipeline
import pipeline.ray
assert pipeline.ray.__name__ == "pipeline.ray"
loaded = {name for name in sys.modules if name.partition(".")[0] in ("ray", "pyarrow", "torch")}
assert not loaded, loaded
assert not hasattr(pipeline.ray, "nothing")
for name in pipeline.ray.__all__:
    try:
        found = getattr(pipeline.ray, name)
        assert found.__name__ == name
    except pipeline.PipelineError as error:
        print(error)
if sys.argv[1] == "with":
    import ray, pipeline.ray.batches
    assert ray.__file__.endswith("ray/__init__.py") and "pipeline/ray" not in ray.__file__
    assert pipeline.ray.batches.ray is ray and hasattr(ray, "remote")
"""


def run(how):
    done = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_with_and_without_ray():
    assert run("with") == []
    lines = run("without")
    assert len(lines) == 8
    assert "pipeline.ray.map_batches needs ray: pip install 'pipeline-mlir[ray]'" in lines
