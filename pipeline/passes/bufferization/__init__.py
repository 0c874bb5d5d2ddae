"""bufferization."""
