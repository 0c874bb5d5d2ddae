"""What all targets share: the interface of a target, facts of a module that the runtime needs, LLVM IR text."""
