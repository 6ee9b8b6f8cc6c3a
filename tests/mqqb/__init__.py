"""Tests of ``msmqwire.mqsd``, and of the columns and payloads it is the first user of."""
