"""How fast this machine reads memory, and how fast a model reads and writes on it."""
