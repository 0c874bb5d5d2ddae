"""transformers' language models as modules that torch.export takes: a prompt, one token, several, around one cache."""
