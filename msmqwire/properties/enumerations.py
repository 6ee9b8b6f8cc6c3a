"""What the numbers of enumerated properties of a queue stand for, from 0."""

from __future__ import annotations

import enum


class PrivacyLevel(enum.StrEnum):
    """PrivacyLevel of a queue ([MS-MQDMPR] 3.1.1.2)."""

    NONE = "none"
    OPTIONAL = "optional"
    BODY = "body"


class Scope(enum.StrEnum):
    """Scope of a queue ([MS-MQDMPR] 3.1.1.2)."""

    SITE = "site"
    ENTERPRISE = "enterprise"
