"""linalg on tensors → `fusion.group` ops, each of which becomes one kernel.

Elementwise producers move into their consumers (`fuse-elementwise`), then groups form by the target's table of rules
(`form-groups`) or as the user says (`fuse-into`). Every refusal leaves a remark with a reason.
"""
