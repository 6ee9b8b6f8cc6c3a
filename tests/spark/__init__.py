"""Tests of msmqwire.spark, on a real Spark."""
