"""Tests of ``msmqwire.mqqb``."""
