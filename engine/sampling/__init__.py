"""From the logits of one position to the next token: a chain of penalties, filters and a draw.

`sampler.py` is the chain and tells its order; this file imports nothing, so that the window can know the
settings before it loads NumPy.
"""
