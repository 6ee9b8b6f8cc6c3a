"""The data source: which captures are read, by which tasks, and as which rows."""
