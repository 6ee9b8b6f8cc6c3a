"""Payloads that an encoder wrote, in memory that it can write again."""

from msmqwire.columns._payloads import Payloads

class Encoded(Payloads): ...
