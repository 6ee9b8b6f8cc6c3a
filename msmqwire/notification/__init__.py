"""The roles of change notifications ([MS-MQCN] 3), without I/O."""
