"""TorchScript → a module that torch.export can trace: an interpreter of its graph; loops and branches stay regions."""
