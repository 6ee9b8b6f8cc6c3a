"""``python -m msmqwire`` is the command ``msmqwire``."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    # Python puts the current folder first on its path, and a folder of captures may hold a json.py
    if sys.path[0] == os.getcwd():
        del sys.path[0]
    from msmqwire.cli import command

    command()
