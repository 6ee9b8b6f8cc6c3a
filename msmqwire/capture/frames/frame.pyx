"""The texts of the reasons why records cannot be read."""

__all__ = ["MAX_PROBLEMS", "REASONS"]

MAX_PROBLEMS = MOST_PROBLEMS

REASONS = {
    RECORD_CUT: "the file ends inside this record: it needs {needed} bytes, {available} are left",
    FRAME_TOO_LARGE: "a frame of {needed} bytes; the maximum is {available}",
    FRAME_OVER_ORIGINAL: "{needed} bytes captured of a frame of {available}",
    FRACTION: "a fraction of a second of {available} units",
    BLOCK_LENGTH: "a block of {needed} bytes; the length must be at least {available} and a multiple of 4",
    BLOCK_TOO_LARGE: "a block of {needed} bytes; the maximum for its type is {available}",
    BLOCK_ENDS_DIFFER: "a block with the length {needed} at its start and {available} at its end",
    FRAME_OVER_BLOCK: "a frame of {needed} bytes in a block with space for {available}",
    UNKNOWN_INTERFACE: "interface {needed}, but the section describes {available}",
    SECTION_ORDER: "a section whose byte order magic is 0x{available:08x}",
    LINK_CUT: "the link layer header is truncated: it needs {needed} bytes, {available} were captured",
    IP_VERSION: "IP version {available}; the link layer says {needed}",
    IP_CUT: "the IP headers are truncated: they need {needed} bytes, {available} were captured",
    IP_HEADER_LENGTH: "an IP header of {available} bytes; the minimum is {needed}",
    IP_TOTAL_LENGTH: "an IP packet of {available} bytes with headers of {needed}",
    UDP_CUT: "the UDP header is truncated: it needs {needed} bytes, {available} were captured",
    UDP_LENGTH: "a UDP datagram of {needed} bytes in an IP packet with space for {available}",
    PAYLOAD_CUT: "the frame is truncated: a datagram of {needed} bytes, {available} were captured",
    FRAGMENT: "a fragment that ends at byte {needed} does not fit its IP datagram",
    TCP_CUT: "the TCP header is truncated: it needs {needed} bytes, {available} were captured",
    TCP_HEADER_LENGTH: "a TCP header of {needed} bytes in an IP packet with space for {available}",
    IPX_CUT: "the IPX header is truncated: it needs {needed} bytes, {available} were captured",
    IPX_LENGTH: "an IPX packet of {available} bytes; the minimum is {needed}",
    GAP: "{needed} bytes before this segment are missing, from offset {available} of its stream",
    CONFLICT: "the bytes of this segment differ from earlier bytes there; its stream is at offset {available}",
    NO_PACKET: "no packet begins at offset {available} of the stream of this segment",
    UNFINISHED: "the stream ends after this segment, {available} bytes into a packet of {needed}",
    EVICTED: "a stream is evicted after this segment, at offset {available}: too many are open",
    INCOMPLETE: "an IP datagram in fragments is incomplete: {needed} bytes were captured",
    FRAGMENT_DIFFERS: "the bytes of this fragment differ from earlier bytes there",
    UNCOMPARED: "{needed} bytes of this segment are not read: its stream is already at offset {available}, and bytes "
    "that can be compared with them are not kept",
    INTERFACE_LIMIT: "interface {needed}; the limit is the first {available} of a section (FileLimits.interfaces)",
}
