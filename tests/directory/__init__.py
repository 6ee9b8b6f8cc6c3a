"""Tests of ``msmqwire.directory``."""
