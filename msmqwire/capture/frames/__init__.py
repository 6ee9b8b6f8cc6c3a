"""Captured frames: headers, IP fragments, selection, and the rows they give."""
