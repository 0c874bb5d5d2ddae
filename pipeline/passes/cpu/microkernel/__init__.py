"""microkernel."""
