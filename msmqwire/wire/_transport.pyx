"""The one parser of ``transport=`` arguments."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t

TRANSPORT_NAMES: tuple[str, ...] = tuple([transport.name.lower() for transport in Transport])


cdef str DEFAULT = "unknown"
cdef tuple alike = tuple([transports_of(code) for code in Transport])


cdef Transports transports_of(uint32_t code):
    """The transports of payloads that one transport carried."""
    cdef Transports transports = Transports.__new__(Transports)
    transports.code = code
    return transports


cdef dict accepted_transports(tuple names):
    """The codes of the transports that an argument may name."""
    return {name: TRANSPORT_NAMES.index(name) for name in names}


cdef uint32_t transport_code(str transport, dict accepted) except? 0xFFFFFFFF:
    """The code of a transport's name, by ``accepted``, which has "unknown" always."""
    if transport is DEFAULT:  # a look in the dictionary would be a seventh of the time of decoding a packet
        return Transport.UNKNOWN
    code = accepted.get(transport)
    if code is None:
        raise ValueError(f"transport={transport!r} is not one of {', '.join(map(repr, accepted))}")
    return code


cdef Transports parse_transports(object transport, dict accepted, size_t count):
    """The transports of ``count`` payloads: a name in ``accepted``, or an array of uint8 codes of such names.

    Raises
    ------
    ValueError
        The name or a code is not accepted, or the array has another length.
    """
    cdef Transports parsed
    cdef bytes owner
    cdef const uint8_t* codes
    cdef uint32_t known = 0
    cdef size_t i
    if isinstance(transport, str):
        return alike[transport_code(transport, accepted)]
    view = memoryview(transport)
    if view.itemsize != 1 or view.ndim != 1:
        raise ValueError("transport must be a name, or an array of uint8 with one entry for each payload")
    owner = bytes(view)  # what was checked must not change
    codes = owner
    if <size_t>len(owner) != count:
        raise ValueError(f"transport has {len(owner)} entries for {count} payloads")
    for code in accepted.values():
        known |= 1u << <uint32_t>code
    for i in range(count):
        if codes[i] >= 32 or not known >> codes[i] & 1:
            raise ValueError(f"transport[{i}]={codes[i]} is not the code of one of {', '.join(map(repr, accepted))}")
    parsed = Transports.__new__(Transports)
    if count:
        parsed.owner = owner
        parsed.codes = codes
    return parsed
