"""Fuzzing of every parser: README.md says how."""
