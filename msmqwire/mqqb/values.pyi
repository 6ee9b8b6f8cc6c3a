"""Values of packets as Python has them: what ``decode`` and ``encode`` build on, and nothing for others."""
