"""What the tests of every batch have in common, whatever its protocol."""
