"""Whatever the user has → a torch.export program: modules, functions, files; errors as one paragraph."""
