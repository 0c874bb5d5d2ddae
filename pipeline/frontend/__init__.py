"""From torch to a Program. The only room, with the tests and tools, that imports torch."""
