"""Object files in this process: loading, external functions, threads, symbols for perf."""
