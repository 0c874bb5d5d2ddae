"""What may be fused, as data: tables of rules per target, facts and words of ops, reasons against it, `fuse_into`.

Says which ops of tensor-level linalg may become one kernel; `passes.fusion` asks it and does the rewriting.
"""
