"""The selection of payloads by their ports, times and addresses."""

from libc.stddef cimport size_t
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy

from msmqwire.columns._buffer cimport allocate_zeroed
from msmqwire.wire._address cimport IPV4, IPV6
from msmqwire.wire.simd cimport wire_bswap16

from ipaddress import ip_network

if False:  # for type checkers: see stubs.py
    from collections.abc import Iterable, Mapping

cdef enum:
    PORT_SET = 8192  # bytes


cdef bint has_address(const Network* network, uint16_t family, const uint8_t* address) noexcept nogil:
    cdef size_t octets = network.bits >> 3
    cdef uint32_t rest = network.bits & 7
    if network.family != family or memcmp(network.prefix, address, octets) != 0:
        return False
    return rest == 0 or (network.prefix[octets] ^ address[octets]) >> (8 - rest) == 0


cdef bint selects(
    const Selection* selection, bint timed, int64_t time, uint16_t family, const uint8_t* src, const uint8_t* dst
) noexcept nogil:
    """Return True if a payload is selected; a payload without a time is not if times are."""
    cdef size_t i
    if selection.by_time and not (timed and selection.since <= time < selection.until):
        return False
    for i in range(selection.count):
        if has_address(&selection.networks[i], family, src) or has_address(&selection.networks[i], family, dst):
            return True
    return selection.count == 0


cdef const uint64_t* put_ports(uint8_t* target, object ports) except NULL:
    """Write a set of ports in the form that _layers.pxd describes, over zeros."""
    cdef uint64_t* words = <uint64_t*>target
    cdef uint32_t bit
    for port in ports:
        bit = wire_bswap16(<uint16_t>port)
        words[bit >> 6] |= <uint64_t>1 << (bit & 63)
    return words


cdef class PayloadSelection:
    """The payloads that ``capture.open`` selects.

    Parameters
    ----------
    ports : mapping of str to iterable of int
        For ``"udp"``, ``"tcp"`` and ``"ipx"``: the sender's or the receiver's must be one of them.
    addresses : iterable of str
        Addresses and networks; the sender or the receiver must have one of them. Empty: all are selected.
    since, until : int or None
        Nanoseconds since 1970: the first that is selected, and the first after it that is not.

    Raises
    ------
    ValueError
        A text is neither an address nor a network.
    """

    def __cinit__(
        self, ports: Mapping[str, Iterable[int]], addresses: Iterable[str], since: int | None, until: int | None
    ) -> None:
        cdef Network* network
        cdef bytes prefix
        self.port_sets = allocate_zeroed(3 * PORT_SET)
        self.ports.udp = put_ports(self.port_sets.data, ports["udp"])
        self.ports.tcp = put_ports(self.port_sets.data + PORT_SET, ports["tcp"])
        self.ports.ipx = put_ports(self.port_sets.data + 2 * PORT_SET, ports["ipx"])
        self.selection.by_time = since is not None or until is not None
        self.selection.since = INT64_MIN if since is None else since
        self.selection.until = INT64_MAX if until is None else until
        networks = [ip_network(address, strict=False) for address in addresses]
        self.selection.networks = <Network*>calloc(len(networks) + 1, sizeof(Network))
        if self.selection.networks == NULL:
            raise MemoryError
        for one in networks:
            network = &self.selection.networks[self.selection.count]
            prefix = one.network_address.packed
            network.family = IPV4 if one.version == 4 else IPV6
            network.bits = one.prefixlen
            memcpy(network.prefix, <const uint8_t*>prefix, <size_t>len(prefix))
            self.selection.count += 1
        self.by_more = self.selection.by_time or self.selection.count != 0

    def __dealloc__(self):
        free(self.selection.networks)
