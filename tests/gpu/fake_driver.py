"""CUDA's driver as cuda.bindings has it, with memory on the CPU and launches on the simulator."""

from __future__ import annotations

import ctypes
import types

import numpy as np
from cuda_simulator import SimulatedDevice

#: The stream that graphs are recorded on.
OURS = 77


class FakeDriver:
    """The functions of cuda.bindings.driver that the runtime uses, with their way of returning (error, value...)."""

    CUdevice_attribute = types.SimpleNamespace(
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR="major", CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR="minor"
    )

    CUfunction_attribute = types.SimpleNamespace(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES="shared")
    CUstream_flags = types.SimpleNamespace(CU_STREAM_NON_BLOCKING=1)
    CUstreamCaptureMode = types.SimpleNamespace(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL=1)

    def __init__(self, kernels, llvm, capability=(9, 0)):
        self.simulator = SimulatedDevice(kernels, llvm)
        self.kernels = {kernel.name: kernel for kernel in kernels}
        self.capability = dict(zip(("major", "minor"), capability, strict=True))
        self.memory = {}
        self.loaded = b""
        self.launches = []
        self.shared = {}
        self.failing = None
        self.recording = None
        self.graphs = []
        self.graph_launches = 0

    def cuInit(self, flags):
        return (0,)

    def cuDeviceGet(self, number):
        return 0, number

    def cuDevicePrimaryCtxRetain(self, device):
        return 0, "context"

    def cuCtxSetCurrent(self, context):
        return (0,)

    def cuDeviceGetAttribute(self, which, device):
        return 0, self.capability[which]

    def cuModuleLoadData(self, image):
        self.loaded = image
        return 0, "module"

    def cuModuleGetFunction(self, module, name):
        return 0, name.decode()

    def cuFuncSetAttribute(self, name, attribute, value):
        assert attribute == "shared" and value <= 227 * 1024
        self.shared[name] = value
        return (0,)

    def cuMemAlloc(self, size):
        array = np.full(size + 256, 0xA5, np.uint8)
        address = -(-array.ctypes.data // 256) * 256
        self.memory[address] = array
        return 0, address

    def cuMemFree(self, address):
        del self.memory[address]
        return (0,)

    def cuMemcpyHtoDAsync(self, target, source, size, stream):
        ctypes.memmove(target, source, size)
        return (0,)

    cuMemcpyDtoHAsync = cuMemcpyDtoDAsync = cuMemcpyHtoDAsync

    def cuStreamSynchronize(self, stream):
        return (0,)

    def cuGetErrorString(self, error):
        return 0, b"an illegal memory access was encountered"

    def cuLaunchKernel(self, name, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra):
        self.launches.append(name)
        if name == self.failing:
            return (700,)
        assert (stream == OURS) == (self.recording is not None), "other streams may not launch while one records"
        kernel = self.kernels[name]
        assert shared == kernel.shared <= self.shared.get(name, 48 * 1024)
        assert (gy, gz, bx, by, bz) == (1, 1, kernel.block, 1, 1)
        along = sum(len(kind[2]) + bool(kind[3]) + len(kind[4]) for kind in kernel.arguments if kind[0] == "buffer")
        count = len(kernel.arguments) + along
        values = [ctypes.c_int64.from_address(p).value for p in (ctypes.c_void_p * count).from_address(parameters)]
        order = sorted(range(len(kernel.arguments)), key=lambda number: kernel.arguments[number][0] == "number")
        slots = (ctypes.c_int64 * count)(*(values[number] for number in order), *values[len(kernel.arguments) :])
        if self.recording is not None:
            self.recording.append(lambda: self.simulator._run(kernel, gx, slots))
        else:
            self.simulator._run(kernel, gx, slots)
        return (0,)

    def cuStreamCreate(self, flags):
        return 0, OURS

    def cuStreamBeginCapture(self, stream, mode):
        self.recording = []
        return (0,)

    def cuStreamEndCapture(self, stream):
        graph, self.recording = self.recording, None
        return 0, graph

    def cuGraphInstantiate(self, graph, flags):
        self.graphs.append(graph)
        return 0, len(self.graphs) - 1

    def cuGraphDestroy(self, graph):
        return (0,)

    def cuGraphExecDestroy(self, number):
        self.graphs[number] = None
        return (0,)

    def cuGraphLaunch(self, number, stream):
        if self.failing == "graph":
            return (700,)
        self.graph_launches += 1
        for work in self.graphs[number]:
            work()
        return (0,)
