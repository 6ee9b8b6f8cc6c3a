"""A file for ``msmqwire serve``: the server of the printed example that is in another site than its client."""

from __future__ import annotations

OTHER_SITE = """\
[enterprise]
id = "e6eaba61-d1c6-11db-baac-0003ff4e2d22"

[site]
id = "e6eaba60-d1c6-11db-baac-0003ff4e2d22"
connected_networks = ["e6eaba62-d1c6-11db-baac-0003ff4e2d22"]

[[site.servers]]
name = "nt4pec"

[listen]
port = 0
"""
