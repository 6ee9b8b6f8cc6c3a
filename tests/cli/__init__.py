"""Tests of the command line: real processes, real files, a real terminal."""
