"""Capture files: formats, compression, and the reader of one file."""
