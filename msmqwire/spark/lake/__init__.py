"""The tables that the pipeline writes: the work of its tasks, and the commit of their files."""
