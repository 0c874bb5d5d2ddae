"""transformers' language models as modules that torch.export takes: a prompt, and a step, around one cache."""
