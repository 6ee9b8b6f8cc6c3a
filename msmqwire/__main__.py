"""``python -m msmqwire`` is the command ``msmqwire``."""

from __future__ import annotations

from msmqwire.cli import command

if __name__ == "__main__":
    command()
