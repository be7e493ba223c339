"""Causerie beside llama.cpp, measured in alternation: `python -m benchmarks.compare`."""
