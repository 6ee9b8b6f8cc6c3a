"""The columns of a batch of messages that are made when they are first read."""

from msmqwire.columns._batch cimport Batch


cdef int derive_column(Batch batch, object column) except -1
