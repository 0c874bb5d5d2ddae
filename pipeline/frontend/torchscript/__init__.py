"""torchscript."""
