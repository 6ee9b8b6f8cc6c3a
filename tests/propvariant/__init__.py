"""PROPVARIANT values on their own: [MS-MQCN] 2.2.3."""
