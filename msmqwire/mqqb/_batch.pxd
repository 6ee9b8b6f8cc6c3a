"""The batch of messages."""

from msmqwire.columns._batch cimport Batch


cdef class MessageBatch(Batch):
    pass
