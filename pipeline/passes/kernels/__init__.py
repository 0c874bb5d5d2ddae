"""Groups and loops → kernels: private functions in destination-passing style, and calls of them.

Takes `fusion.group` ops on tensors and leaves `func.call`; calls of external functions and the recording of profiles
are placed here.
"""
