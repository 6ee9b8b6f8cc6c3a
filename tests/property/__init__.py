"""What holds for every packet: round trips with Hypothesis, and the oracle over seeded cases."""
