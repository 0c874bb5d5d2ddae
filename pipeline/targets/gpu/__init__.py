"""What GPU targets share: kernels as functions of a thread, and the plan that launches them."""
