"""transformers' language models as modules that torch.export takes: a prompt, a step and several tokens, around one cache."""
