"""``python -m msmqwire`` is the command ``msmqwire``."""

from __future__ import annotations

import sys

from msmqwire.cli import main

if __name__ == "__main__":
    sys.exit(main())
