"""Payloads that an encoder wrote, in memory that it can write again."""

from msmqwire.columns.payloads import Payloads

class Encoded(Payloads):
    """What ``encode_batch`` returns; given back as ``out=``, its memory is written again when nobody else holds it."""
