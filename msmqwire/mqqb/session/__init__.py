"""Packets of sessions, and pings: their headers, reader and writer ([MS-MQQB] 2.2)."""
