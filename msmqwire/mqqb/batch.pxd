"""The batch of messages."""

from msmqwire.columns.batch cimport Batch


cdef class MessageBatch(Batch):
    pass
