"""The Arrow C data interface, for compiled modules."""
