"""Who is timed: pipeline, PyTorch itself, and other compilers and runtimes; each makes a call of a module.

Add one by a subclass of `Contestant` in `CONTESTANTS`. Nothing is imported here before it is needed: each contestant
may live in another virtual environment.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import torch

Run = Callable[[], Any]

#: What torch.export imports when it is called first.
_CODE = "pipeline.targets.cpu.build"
_EXPORT = ("torch.export._trace", "torch._dynamo.functional_export")


@dataclass
class Job:
    """What a contestant works on.

    Attributes:
        model, inputs: the module and the arguments of its calls.
        threads: how many it may use.
        folder: an empty folder of its own.
    """

    model: torch.nn.Module
    inputs: tuple[torch.Tensor, ...]
    threads: int
    folder: Path


class Contestant:
    """PyTorch eager, and what the others have in common.

    Attributes:
        packages: the distributions that it needs, the first of which is what it is known by.
        modules: what it imports before it is timed.
        runs_python: whether it takes Python's own control flow.
        has_cache: whether a second process compiles faster than the first.
        by_default: whether it takes part unless it is named.
        trains: whether its calls compute gradients.
    """

    packages: tuple[str, ...] = ("torch",)
    modules: tuple[str, ...] = ("torch",)
    runs_python = False
    has_cache = False
    by_default = True
    trains = False

    def settings(self, own: Path, common: Path) -> dict[str, str]:
        """Environment variables of its process; what it caches goes to `own`, a folder of this workload.

        The folder `common` is for what it compiles once for all workloads.
        """
        return {}

    def preload(self) -> None:
        """Imports what it needs: that is not part of compilation."""
        for module in self.modules:
            importlib.import_module(module)

    def capture(self, job: Job) -> Any:
        """What it makes its graph of; timed apart from `build`."""
        return job.model

    def build(self, captured: Any, job: Job) -> Run:
        """A call without arguments, which returns what `arrays` takes. Whoever compiles in the first call makes one."""
        raise NotImplementedError

    def arrays(self, result: Any) -> list[np.ndarray]:
        """The results of a call as NumPy arrays."""
        results = result if isinstance(result, (tuple, list)) else [result]
        return [one.numpy() if hasattr(one, "numpy") else one for one in results]


class Eager(Contestant):
    """PyTorch, op by op."""

    runs_python = True

    def build(self, captured: Any, job: Job) -> Run:
        captured(*job.inputs)  # what torch sets up once
        return lambda: captured(*job.inputs)


class Pipeline(Contestant):
    """This project.

    Attributes:
        options: of `pipeline.compile`.
    """

    options: Mapping[str, Any] = MappingProxyType({})
    packages = ("pipeline-mlir", "torch-mlir", "torch")
    modules = (*_EXPORT, "pipeline.compiler", "pipeline.lowering", "pipeline.frontend.importer.exported_program", _CODE)
    has_cache = True

    def settings(self, own: Path, common: Path) -> dict[str, str]:
        return {"PIPELINE_CACHE_DIR": str(own), "PIPELINE_CACHE_SIZE": "1G"}

    def capture(self, job: Job) -> Any:
        import torch

        return torch.export.export(job.model, job.inputs)

    def build(self, captured: Any, job: Job) -> Run:
        import pipeline

        executable = pipeline.compile(captured, job.inputs, num_threads=job.threads, **self.options)
        return lambda: executable(*job.inputs)


class EagerBf16(Contestant):
    """PyTorch with weights and inputs in bf16, and so everything between them."""

    by_default = False

    def capture(self, job: Job) -> Any:
        return job.model.bfloat16()

    def build(self, captured: Any, job: Job) -> Run:
        inputs = _in_bf16(job.inputs)
        captured(*inputs)
        return lambda: captured(*inputs)

    def arrays(self, result: Any) -> list[np.ndarray]:
        results = result if isinstance(result, (tuple, list)) else [result]
        return [one.float().numpy() for one in results]


class PipelineBf16(Pipeline):
    """This project, which rounds the operands of contractions in f32 to bf16."""

    by_default = False
    options = MappingProxyType({"precision": "bf16"})


class PipelineOfBf16(EagerBf16):
    """This project, of the model that eager has in bf16."""

    packages, modules = Pipeline.packages, Pipeline.modules

    def settings(self, own: Path, common: Path) -> dict[str, str]:
        return {"PIPELINE_CACHE_SIZE": "0"}

    def build(self, captured: Any, job: Job) -> Run:
        import pipeline

        inputs = _in_bf16(job.inputs)
        executable = pipeline.compile(captured, inputs, num_threads=job.threads)
        return lambda: executable(*inputs)


class Inductor(Contestant):
    """torch.compile, with weights frozen as the others have them. C++ headers are compiled once for all workloads."""

    modules = ("torch", "torch._dynamo", "torch._inductor.compile_fx")

    def settings(self, own: Path, common: Path) -> dict[str, str]:
        return {
            "TORCHINDUCTOR_CACHE_DIR": str(common),
            "TORCHINDUCTOR_FX_GRAPH_CACHE": "0",
            "TORCHINDUCTOR_AUTOGRAD_CACHE": "0",
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
            "TORCHINDUCTOR_FREEZING": "1",
        }

    def build(self, captured: Any, job: Job) -> Run:
        import torch

        compiled = torch.compile(captured)
        compiled(*job.inputs)
        return lambda: compiled(*job.inputs)


class OnnxRuntime(Contestant):
    """ONNX Runtime, from torch.onnx."""

    packages = ("onnxruntime", "onnx", "onnxscript", "torch")
    modules = (*_EXPORT, "onnxruntime", "onnxscript", "torch.onnx._internal.exporter._core")

    def capture(self, job: Job) -> Any:
        return onnx_file(job)

    def build(self, captured: Any, job: Job) -> Run:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = job.threads, 1
        session = onnxruntime.InferenceSession(captured, options, providers=["CPUExecutionProvider"])
        names = [one.name for one in session.get_inputs()]
        feed = {name: tensor.numpy() for name, tensor in zip(names, job.inputs, strict=True)}
        return lambda: session.run(None, feed)


class OpenVino(Contestant):
    """OpenVINO, from the module where it can, else from ONNX."""

    packages = ("openvino", "onnx", "onnxscript", "torch")
    modules = (*_EXPORT, "openvino", "onnxscript", "torch.onnx._internal.exporter._core")

    def capture(self, job: Job) -> Any:
        import openvino

        try:
            model = openvino.convert_model(job.model, example_input=job.inputs)
        except Exception:  # whatever it cannot trace, such as torch.cond
            model = openvino.convert_model(onnx_file(job))
        shapes = {index: list(tensor.shape) for index, tensor in enumerate(job.inputs)}
        model.reshape(shapes)  # tracing leaves all dimensions open
        return model

    def build(self, captured: Any, job: Job) -> Run:
        import openvino

        settings = {
            "INFERENCE_NUM_THREADS": job.threads,
            "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "f32",
            "ENABLE_CPU_PINNING": False,
        }
        request = openvino.Core().compile_model(captured, "CPU", settings).create_infer_request()
        feed = {index: tensor.numpy() for index, tensor in enumerate(job.inputs)}
        return lambda: request.infer(feed, share_inputs=True, share_outputs=True)

    def arrays(self, result: Any) -> list[np.ndarray]:
        return [result[index] for index in range(len(result))]


class Iree(Contestant):
    """IREE, with data tiling."""

    packages = ("iree-base-compiler", "iree-base-runtime", "iree-turbine", "torch")
    modules = ("iree.compiler", "iree.runtime", "iree.turbine.aot", *_EXPORT)

    def capture(self, job: Job) -> Any:
        import torch
        from iree.turbine import aot
        from iree.turbine.aot.decompositions import current_aot_decompositions

        exported = torch.export.export(job.model, job.inputs).run_decompositions(current_aot_decompositions())
        return aot.export(exported)

    def build(self, captured: Any, job: Job) -> Run:
        from iree import runtime

        flags = ("--iree-opt-data-tiling", "--iree-dispatch-creation-data-tiling")
        captured.session.set_flags("--iree-llvmcpu-target-cpu=host", *flags)
        code = captured.compile(save_to=None, target_backends=("llvm-cpu",)).map_memory()
        if job.threads > 1:
            runtime.flags.parse_flags(f"--task_topology_group_count={job.threads}")
        config = runtime.Config("local-sync" if job.threads == 1 else "local-task")
        context = runtime.SystemContext(config=config)
        module = runtime.VmModule.copy_buffer(config.vm_instance, code)
        context.add_vm_module(module)
        function = module.lookup_function("main")
        inputs = [runtime.asdevicearray(config.device, tensor.numpy()) for tensor in job.inputs]

        def run() -> list[Any]:
            arguments, results = runtime.VmVariantList(len(inputs)), runtime.VmVariantList(1)
            for one in inputs:
                arguments.push_ref(one._buffer_view)
            context.vm_context.invoke(function, arguments, results)
            views = (results.get_as_object(index, runtime.HalBufferView) for index in range(len(results)))
            return [runtime.DeviceArray(config.device, view, implicit_host_transfer=True) for view in views]

        return run

    def arrays(self, result: Any) -> list[np.ndarray]:
        return [one.to_host() for one in result]


class Tvm(Contestant):
    """TVM without tuning."""

    packages = ("apache-tvm", "torch")
    modules = ("tvm", "tvm.relax", "tvm.relax.frontend.torch", *_EXPORT)

    def settings(self, own: Path, common: Path) -> dict[str, str]:
        return {"TVM_BIND_THREADS": "0"}

    def capture(self, job: Job) -> Any:
        import torch
        from tvm.relax.frontend.torch import from_exported_program

        return from_exported_program(torch.export.export(job.model, job.inputs))

    def build(self, captured: Any, job: Job) -> Run:
        import tvm
        from tvm import relax

        os.environ["TVM_NUM_THREADS"] = str(job.threads)
        cpu = tvm.target.codegen.llvm_get_system_cpu()
        target = tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": job.threads})
        machine = relax.VirtualMachine(tvm.compile(captured, target), tvm.cpu())
        main, inputs = machine["main"], [tvm.runtime.tensor(tensor.numpy()) for tensor in job.inputs]
        return lambda: main(*inputs)

    def arrays(self, result: Any) -> list[np.ndarray]:
        results = [result] if hasattr(result, "numpy") else list(result)
        return [one.numpy() for one in results]


def _in_bf16(inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    return tuple(one.bfloat16() if one.is_floating_point() else one for one in inputs)


def onnx_file(job: Job) -> str:
    """The path of the model as ONNX."""
    import torch

    path = str(job.folder / "model.onnx")
    torch.onnx.export(job.model, job.inputs, dynamo=True, verbose=False).save(path, external_data=True)
    return path


CONTESTANTS: dict[str, Contestant] = {
    "eager": Eager(),
    "pipeline": Pipeline(),
    "eager-bf16": EagerBf16(),
    "pipeline-of-bf16": PipelineOfBf16(),
    "pipeline-bf16": PipelineBf16(),
    "inductor": Inductor(),
    "onnxruntime": OnnxRuntime(),
    "openvino": OpenVino(),
    "iree": Iree(),
    "tvm": Tvm(),
}
