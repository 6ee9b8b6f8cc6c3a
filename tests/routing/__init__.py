"""Tests of msmqwire.routing."""
