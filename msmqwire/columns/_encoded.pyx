"""Payloads that an encoder wrote, in memory that can be reused."""

from cpython.ref cimport PyObject
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memset

from msmqwire.columns._batch cimport Batch, Hold, Reading
from msmqwire.columns._buffer cimport allocate
from msmqwire.columns._payloads cimport Payloads, attach_offsets32
from msmqwire.columns.payload_table cimport LARGEST_PAYLOAD

from msmqwire.errors import EncodeError


cdef class Encoded(Payloads):
    """The packets that ``encode_batch`` returns; given as ``out=``, their memory is reused if nothing holds it."""

    cdef int finish(self, size_t count) except -1:
        """Show the ``count`` payloads that were just written."""
        return attach_offsets32(
            self, self.data.data, <const int32_t*>self.offsets.data, count, (self.data, self.offsets)
        )


cdef Encoded reserve_encoded(size_t count, size_t size, Encoded out):
    """``out`` with memory for ``count`` payloads of ``size`` bytes together, or a new object."""
    if size >= 0x80000000:
        raise ValueError(f"up to {size} bytes: encode less than 2 GiB at once")
    if out is None:
        out = Encoded.__new__(Encoded)
    # Slices, views and batches of these payloads hold their owner, so its memory must not change
    held = out.owner is not None and (<PyObject*>out.owner).ob_refcnt > 1
    if held or out.data is None or out.data.size < size:
        out.data = allocate(size)
    if held or out.offsets is None or out.offsets.size < 4 * (count + 1):
        out.offsets = allocate(4 * (count + 1))
    return out


cdef size_t payload_bytes(Batch batch) except? 0:
    """The bytes of a batch's payloads; refuses a row whose payload was too large to be decoded."""
    if batch.payloads.nbytes > LARGEST_PAYLOAD:
        raise unusable(batch, batch.table.fields[0], <size_t>batch.faults["row"][0])
    return <size_t>batch.payloads.nbytes


cdef class Encoder:
    cdef size_t write(self, size_t count, uint8_t* data, int32_t* offsets) noexcept nogil:
        """Write the first ``count`` payloads without gaps; how many were written, fewer when the next is refused."""
        return 0

    cdef size_t largest(self, Batch batch) except? 0:
        """A bound on the bytes that the batch encodes to."""
        return 0

    cdef object refusal(self, size_t payload):
        """The EncodeError of the payload that was refused."""


cdef object unusable(Batch batch, str field, size_t row):
    """The EncodeError of a row that is null, has a fault, or breaks rules; else None."""
    if batch.is_valid("violations")[row]:
        names = batch.violation_names(<Py_ssize_t>row)
        return EncodeError(field, f"the row has {', '.join(names)}", row) if names else None
    fault = batch.fault(<Py_ssize_t>row)
    reason = "the row is null" if fault is None else f"the row has the fault {fault.code} of {fault.field}"
    return EncodeError(field, reason, row)


cdef Payloads encode_all(object packets, object encode, dict needed, type kind, Encoded out, tuple options=()):
    """The payloads of packets, or of all rows of a batch, in the memory of ``out`` where that is large enough.

    ``encode`` writes one packet, an encoder of class ``kind`` those of a batch. ``needed`` are the columns that a batch
    must have, by its table.
    """
    cdef Batch batch
    cdef Encoder encoder
    cdef Hold _hold
    cdef Reading _reading
    cdef size_t count
    cdef size_t written
    if not isinstance(packets, Batch):
        return encode_packets(encode, packets)
    batch = packets
    if batch.table not in needed:
        raise ValueError(f"a batch of {batch.table.name}, not of {' or '.join([table.name for table in needed])}")
    missing = [name for name in needed[batch.table] if not batch.wants(name)]
    if missing:
        raise ValueError(f"a batch to be encoded needs its columns {', '.join(missing)}")
    _hold = Hold(batch)
    _reading = Reading(batch)
    count = batch.length if batch.groups is None else batch.payloads.table.count
    encoder = kind(batch, *options)
    encoder.batch = batch
    encoder.payloads = &batch.payloads.table
    out = reserve_encoded(count, encoder.largest(batch), out)
    with nogil:
        written = encoder.write(count, out.data.data, <int32_t*>out.offsets.data)
    if written < count:
        raise encoder.refusal(written)
    out.finish(written)
    return out


cdef int check_writer(object encode, Batch batch) except -1:
    """Check, when a module is imported, that the bytes that its writers write by hand are all that packets have.

    A byte that they leave out would be what the memory held before.

    Raises
    ------
    ImportError
        ``encode`` does not write the payloads that the batch was decoded from.
    """
    cdef Encoded out = reserve_encoded(batch.length, 2 * payload_bytes(batch), None)
    memset(out.data.data, 0xA5, out.data.size)
    for number, (expected, found) in enumerate(zip(batch.payloads, encode(batch, out=out), strict=True)):
        if found != expected:
            raise ImportError(f"payload {number} of {batch.table.name} is not written as it was read: {found.hex()}")
    return 0


cdef Payloads encode_packets(object encode, object packets):
    """The payloads of packets that ``encode`` writes one at a time."""
    cdef list parts = []
    cdef list offsets = [0]
    cdef Py_ssize_t size = 0
    for packet in packets:
        try:
            part = encode(packet)
        except EncodeError as error:
            raise EncodeError(error.field, error.reason, len(parts)) from None
        parts.append(part)
        size += len(part)
        offsets.append(size)
    return Payloads(b"".join(parts), offsets)
