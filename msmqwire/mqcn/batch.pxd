"""The batch of change notifications, in three levels: messages, changes, properties."""

from msmqwire.columns.batch cimport Batch


cdef class NotificationBatch(Batch):
    cdef bint derived  # whether the members of properties stand for what the kernel wrote last
