"""Slow decoders written from the specifications with ``struct`` alone: the oracle of the kernels.

Nothing here imports ``msmqwire``, and nothing here is fast on purpose.
"""
