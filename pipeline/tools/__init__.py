"""The command-line drivers: thin layers over the API."""
