"""What the compiler and the runtime agree on: signatures, entry points, code, files; imports nothing of either."""
