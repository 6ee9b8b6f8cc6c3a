"""Tests of ``msmqwire.mqcn``."""
