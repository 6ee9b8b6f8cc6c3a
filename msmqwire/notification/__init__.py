"""The roles of change notifications ([MS-MQCN] 3), without input and output."""
