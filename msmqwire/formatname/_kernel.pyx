"""The grammar of [MS-MQMQ] 2.1 as a kernel: names are read from left to right, up to the first wrong character.

The grammar allows ASCII only, so up to the first fault the offset in characters is the offset in bytes.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.string cimport memchr, memcpy, memset, strlen

from msmqwire.columns._convert cimport TextSpan
from msmqwire.wire._address cimport AF_INET6, inet_pton
from msmqwire.wire._fault cimport (
    BAD_TEXT, BAD_TYPE, BAD_VALUE, TOO_LARGE, TRUNCATED, Fault, FaultCode, no_number, set_fault_of
)
from msmqwire.wire._guid cimport GUID_TEXT_SIZE, HEX_VALUE, parse_guid

cdef enum:
    MAX_COMPUTER = 256
    MAX_QUEUE_NAME = 124
    MAX_SUBQUEUE = 32
    MAX_DOMAIN = 255
    MAX_PRIVATE_ID = 8
    MAX_NETWORK = 8     # hexadecimal digits of an IPX network number
    MAX_NODE = 12       # and of a host number
    MAX_IPV6 = 45       # characters

# Sets of characters: bits of IN_SET
cdef enum:
    VISIBLE = 1    # VCHAR
    COMPUTER = 2   # VCHAR without the backslash
    HOST = 4       # without slash and colon besides
    QUEUE = 8      # QueueName of MSMQ 1.0
    SUBQUEUE = 16  # QueueName of MSMQ 2.0 and Subqueue: without quotation mark, plus and comma
    DIGIT = 32
    HEXADECIMAL = 64
    IPV6 = 128

cdef uint8_t[256] IN_SET


cdef int fill_sets() except -1:
    for byte in range(0x21, 0x80):
        character = chr(byte)
        bits = 0
        if byte != 0x7F:
            bits |= VISIBLE
            bits |= 0 if character == "\\" else COMPUTER
            bits |= 0 if character in "\\/:" else HOST
        bits |= 0 if character in "\\;" else QUEUE
        bits |= 0 if character in '\\;"+,' else SUBQUEUE
        bits |= DIGIT if character in "0123456789" else 0
        bits |= HEXADECIMAL if character in "0123456789abcdefABCDEF" else 0
        bits |= IPV6 if character in "0123456789abcdefABCDEF:." else 0
        IN_SET[byte] = bits
    return 0


fill_sets()


# The text of one name; an element of a list ends before the text
cdef struct Scanner:
    const uint8_t* text
    size_t at
    size_t end
    size_t size
    uint32_t options
    Fault* fault


# --- Parts of rules ---


cdef int refuse_at(
    const Scanner* scanner, size_t offset, FaultCode code, Field field, Expected expected
) noexcept nogil:
    """Record that ``expected`` is not at ``offset``; always -1. At the end of the text the code is TRUNCATED."""
    if offset == scanner.size:
        code = TRUNCATED
    return set_fault_of(scanner.fault, code, field, offset, no_number(), expected, no_number())


cdef int refuse(const Scanner* scanner, FaultCode code, Field field, Expected expected) noexcept nogil:
    return refuse_at(scanner, scanner.at, code, field, expected)


cdef inline size_t matching(const Scanner* scanner, const char* expected, size_t length) noexcept nogil:
    """The number of next characters that match ``expected``, lower-case ASCII, in any case of ASCII letters."""
    cdef const uint8_t* here = scanner.text + scanner.at
    cdef size_t left = scanner.end - scanner.at
    cdef size_t i
    cdef uint8_t character
    for i in range(length):
        if i == left:
            return i
        character = here[i]
        if c"A" <= character <= c"Z":
            character |= 0x20
        if character != <uint8_t>expected[i]:
            return i
    return length


cdef inline bint skip(Scanner* scanner, const char* expected) noexcept nogil:
    """Move past ``expected`` where it is next."""
    cdef size_t length = strlen(expected)
    if matching(scanner, expected, length) != length:
        return False
    scanner.at += length
    return True


cdef inline bint is_rest(const Scanner* scanner, const char* expected) noexcept nogil:
    """Return True if ``expected`` is the rest of the name."""
    cdef size_t length = strlen(expected)
    return scanner.end - scanner.at == length and matching(scanner, expected, length) == length


cdef int refuse_word(
    const Scanner* scanner, const char* words, FaultCode code, Field field, Expected expected
) noexcept nogil:
    """Return the first character that continues none of ``words``; each of them ends with a space."""
    cdef const char* stop = words
    cdef size_t most = 0
    while words[0]:
        while stop[0] != c" ":
            stop += 1
        most = max(most, matching(scanner, words, <size_t>(stop - words)))
        stop += 1
        words = stop
    return refuse_at(scanner, scanner.at + most, code, field, expected)


cdef inline bint is_next(const Scanner* scanner, uint8_t character) noexcept nogil:
    return scanner.at < scanner.end and scanner.text[scanner.at] == character


cdef inline size_t run_of(const Scanner* scanner, uint8_t characters, size_t limit) noexcept nogil:
    """The number of next characters, up to ``limit``, that are in a set."""
    cdef size_t left = scanner.end - scanner.at
    cdef size_t count = 0
    if limit > left:
        limit = left
    while count < limit and IN_SET[scanner.text[scanner.at + count]] & characters:
        count += 1
    return count


cdef inline TextSpan take_span(Scanner* scanner, size_t length) noexcept nogil:
    cdef TextSpan span
    span.offset = <uint32_t>scanner.at
    span.length = <uint32_t>length
    scanner.at += length
    return span


cdef inline int read_text(
    Scanner* scanner, uint8_t characters, size_t limit, Field field, Expected expected, TextSpan* span
) noexcept nogil:
    """One to ``limit`` characters of a set, as many as possible."""
    cdef size_t count = run_of(scanner, characters, limit)
    span[0] = take_span(scanner, count)
    if count == 0:
        return refuse(scanner, BAD_TEXT, field, expected)
    if scanner.at < scanner.end and IN_SET[scanner.text[scanner.at]] & characters:
        return refuse(scanner, TOO_LARGE, field, expected)
    return 0


cdef inline int read_end(Scanner* scanner, Field field, Expected expected) noexcept nogil:
    if scanner.at != scanner.end:
        return refuse(scanner, BAD_TEXT, field, expected)
    return 0


cdef inline int read_guid(Scanner* scanner, Field field, uint8_t* guid) noexcept nogil:
    """Guid of 2.1.3, without braces."""
    cdef size_t wrong = parse_guid(scanner.text + scanner.at, scanner.end - scanner.at, guid)
    scanner.at += wrong
    if wrong == GUID_TEXT_SIZE:
        return 0
    if wrong == 8 or wrong == 13 or wrong == 18 or wrong == 23:
        return refuse(scanner, BAD_TEXT, field, HYPHEN)
    return refuse(scanner, BAD_TEXT, field, HEXADECIMAL_DIGIT)


cdef int read_number(
    Scanner* scanner, uint32_t least, uint32_t most, size_t digits, Field field, Expected expected, uint32_t* value
) noexcept nogil:
    """A decimal number without leading zeros."""
    cdef size_t start = scanner.at
    cdef size_t count = run_of(scanner, DIGIT, digits)
    cdef size_t i
    if count == 0:
        return refuse(scanner, BAD_TEXT, field, expected)
    if scanner.text[start] == c"0":
        count = 1
    value[0] = 0
    for i in range(count):
        value[0] = 10 * value[0] + (scanner.text[start + i] - c"0")
    if not least <= value[0] <= most:
        return refuse(scanner, BAD_VALUE, field, expected)
    scanner.at += count
    return 0


# --- Suffixes ---


cdef inline uint8_t suffix_to_end(const Scanner* scanner) noexcept nogil:
    """The suffix that is the rest of the name, without its semicolon; 0 for none."""
    if is_rest(scanner, b"journal"):
        return SUFFIX_JOURNAL
    if is_rest(scanner, b"deadletter"):
        return SUFFIX_DEADLETTER
    if is_rest(scanner, b"deadxact"):
        return SUFFIX_DEADXACT
    return SUFFIX_XACTONLY if is_rest(scanner, b"xactonly") else SUFFIX_NONE


cdef int read_suffix(Scanner* scanner, uint32_t allowed, Expected expected, Name* name) noexcept nogil:
    """The end of a name, or a semicolon and one of the suffixes whose bits are in ``allowed``."""
    cdef uint8_t suffix
    if scanner.at == scanner.end:
        return 0
    if not is_next(scanner, c";"):
        return refuse(scanner, BAD_TEXT, Field.Suffix, expected)
    scanner.at += 1
    suffix = suffix_to_end(scanner)
    if allowed >> suffix & 1:
        name.suffix = suffix
        return 0
    if expected == XACTONLY_OR_END:
        return refuse_word(scanner, b"xactonly ", BAD_TEXT, Field.Suffix, expected)
    if expected == JOURNAL_OR_END:
        return refuse_word(scanner, b"journal ", BAD_TEXT, Field.Suffix, expected)
    return refuse_word(scanner, b"journal deadletter deadxact ", BAD_TEXT, Field.Suffix, expected)


# --- Direct names: 2.1.2 ---


cdef int read_ipv4(
    Scanner* scanner, uint32_t least, uint32_t most, Field field, Expected expected
) noexcept nogil:
    """Four octets with dots between them, the first from ``least`` to ``most``."""
    cdef uint32_t octet = 0
    cdef int _i
    if read_number(scanner, least, most, 3, field, expected, &octet) != 0:
        return -1
    for _i in range(3):
        if not is_next(scanner, c"."):
            return refuse(scanner, BAD_TEXT, field, DOT)
        scanner.at += 1
        if read_number(scanner, 0, 255, 3, field, OCTET, &octet) != 0:
            return -1
    return 0


cdef int read_ipv6(Scanner* scanner, size_t length, Field field) noexcept nogil:
    cdef char[MAX_IPV6 + 1] text
    cdef uint8_t[16] address
    if length > MAX_IPV6:
        return refuse(scanner, TOO_LARGE, field, IP_ADDRESS)
    memcpy(text, scanner.text + scanner.at, length)
    text[length] = 0
    if inet_pton(AF_INET6, text, address) != 1:
        return refuse(scanner, BAD_VALUE, field, IP_ADDRESS)
    scanner.at += length
    return 0


cdef int read_ip_address(Scanner* scanner) noexcept nogil:
    cdef size_t length = run_of(scanner, IPV6, MAX_IPV6 + 1)
    if memchr(scanner.text + scanner.at, c":", length) != NULL:
        return read_ipv6(scanner, length, Field.ProtocolAddressSpecification)
    return read_ipv4(scanner, 0, 255, Field.ProtocolAddressSpecification, IP_ADDRESS)


cdef int read_ipx_address(Scanner* scanner) noexcept nogil:
    """Network number and host number with a colon between them."""
    cdef TextSpan ignored
    cdef Field field = Field.ProtocolAddressSpecification
    if read_text(scanner, HEXADECIMAL, MAX_NETWORK, field, HEXADECIMAL_DIGIT, &ignored) != 0:
        return -1
    if not is_next(scanner, c":"):
        return refuse(scanner, BAD_TEXT, Field.ProtocolAddressSpecification, COLON)
    scanner.at += 1
    return read_text(scanner, HEXADECIMAL, MAX_NODE, Field.ProtocolAddressSpecification, HEXADECIMAL_DIGIT, &ignored)


cdef int read_http_address(Scanner* scanner) noexcept nogil:
    """Two slashes, Host, perhaps a colon and Port, and ``/MSMQ``; Host can be an IPv6 address in brackets."""
    cdef TextSpan ignored
    if not skip(scanner, b"//"):
        return refuse(scanner, BAD_TEXT, Field.ProtocolAddressSpecification, TWO_SLASHES)
    if is_next(scanner, c"["):
        scanner.at += 1
        if read_ipv6(scanner, run_of(scanner, IPV6, MAX_IPV6 + 1), Field.Host) != 0:
            return -1
        if not is_next(scanner, c"]"):
            return refuse(scanner, BAD_TEXT, Field.Host, IP_ADDRESS)
        scanner.at += 1
    elif read_text(scanner, HOST, MAX_COMPUTER, Field.Host, HOST_CHARACTER, &ignored) != 0:
        return -1
    if is_next(scanner, c":"):
        scanner.at += 1
        scanner.at += run_of(scanner, DIGIT, scanner.end)
    if not skip(scanner, b"/msmq"):
        return refuse(scanner, BAD_TEXT, Field.ProtocolAddressSpecification, MSMQ)
    return 0


cdef inline int read_protocol(Scanner* scanner, Name* name) noexcept nogil:
    if skip(scanner, b"os:"):
        name.protocol = PROTOCOL_OS
    elif skip(scanner, b"tcp:"):
        name.protocol = PROTOCOL_TCP
    elif skip(scanner, b"http:"):
        name.protocol = PROTOCOL_HTTP
    elif skip(scanner, b"https:"):
        name.protocol = PROTOCOL_HTTPS
    elif skip(scanner, b"ipx:"):
        name.protocol = PROTOCOL_IPX
    elif scanner.options & SPX and skip(scanner, b"spx:"):
        name.protocol = PROTOCOL_SPX
    elif scanner.options & SPX:
        return refuse_word(scanner, b"os: tcp: https: ipx: spx: ", BAD_TYPE, Field.Protocol, PROTOCOL)
    else:
        return refuse_word(scanner, b"os: tcp: https: ipx: ", BAD_TYPE, Field.Protocol, PROTOCOL)
    return 0


cdef inline int read_address(Scanner* scanner, Name* name) noexcept nogil:
    """ProtocolAddressSpecification."""
    cdef size_t start = scanner.at
    if name.protocol == PROTOCOL_OS:
        return read_text(
            scanner, COMPUTER, MAX_COMPUTER, Field.ProtocolAddressSpecification, COMPUTER_CHARACTER, &name.address
        )
    if name.protocol == PROTOCOL_TCP:
        if read_ip_address(scanner) != 0:
            return -1
    elif name.protocol == PROTOCOL_HTTP or name.protocol == PROTOCOL_HTTPS:
        if read_http_address(scanner) != 0:
            return -1
    elif read_ipx_address(scanner) != 0:
        return -1
    name.address.offset = <uint32_t>start
    name.address.length = <uint32_t>(scanner.at - start)
    return 0


cdef inline bint is_separator(const Scanner* scanner, bint slashes) noexcept nogil:
    return is_next(scanner, c"\\") or (slashes and is_next(scanner, c"/"))


cdef int read_queue_name(Scanner* scanner, bint suffixes, Name* name) noexcept nogil:
    """QueueName of any version, to the end of the name; with ``suffixes``, perhaps followed by ``;JOURNAL``.

    A queue with a name that only MSMQ 1.0 allows, with ``"`` or ``+``, cannot have a subqueue.
    """
    cdef bint modern
    if read_text(scanner, QUEUE, MAX_QUEUE_NAME, Field.QueueName, QUEUE_CHARACTER, &name.queue) != 0:
        return -1
    if scanner.at == scanner.end:
        return 0
    if not is_next(scanner, c";"):
        return refuse(scanner, BAD_TEXT, Field.QueueName, QUEUE_CHARACTER)
    scanner.at -= name.queue.length
    modern = run_of(scanner, SUBQUEUE, name.queue.length) == name.queue.length
    scanner.at += name.queue.length
    if suffixes and (not modern or is_rest(scanner, b";journal")):
        return read_suffix(scanner, 1 << SUFFIX_JOURNAL, JOURNAL_OR_END, name)
    if not modern:
        return refuse(scanner, BAD_TEXT, Field.QueueName, END)
    scanner.at += 1
    if read_text(scanner, SUBQUEUE, MAX_SUBQUEUE, Field.Subqueue, SUBQUEUE_CHARACTER, &name.subqueue) != 0:
        return -1
    if suffixes and is_next(scanner, c";"):
        return read_suffix(scanner, 1 << SUFFIX_JOURNAL, JOURNAL_OR_END, name)
    return read_end(scanner, Field.Subqueue, SUBQUEUE_CHARACTER)


cdef inline int read_direct(Scanner* scanner, Name* name) noexcept nogil:
    """DirectName. A queue of the machine takes precedence over a suffix, a suffix over a subqueue."""
    cdef bint slashes
    cdef uint8_t suffix
    cdef Expected expected
    name.kind = KIND_DIRECT
    if read_protocol(scanner, name) != 0 or read_address(scanner, name) != 0:
        return -1
    slashes = scanner.options & HTTP_SLASHES and name.protocol >= PROTOCOL_HTTP
    if not is_separator(scanner, slashes):
        # Only a backslash and a character that no computer name has end a computer name
        expected = COMPUTER_CHARACTER if name.protocol == PROTOCOL_OS and scanner.at < scanner.end else BACKSLASH
        return refuse(scanner, BAD_TEXT, Field.ProtocolAddressSpecification, expected)
    scanner.at += 1
    name.queue_type = QUEUE_PUBLIC
    if skip(scanner, b"private$"):
        if is_separator(scanner, slashes):
            scanner.at += 1
            name.queue_type = QUEUE_PRIVATE
        else:
            scanner.at -= 8
    elif skip(scanner, b"system$;"):
        suffix = suffix_to_end(scanner)
        if suffix != SUFFIX_NONE and suffix != SUFFIX_XACTONLY:
            name.queue_type = QUEUE_SYSTEM
            name.suffix = suffix
            return 0
        scanner.at -= 8
    return read_queue_name(scanner, True, name)


# --- The other kinds ---


cdef enum:
    MACHINE_SUFFIXES = 1 << SUFFIX_JOURNAL | 1 << SUFFIX_DEADLETTER | 1 << SUFFIX_DEADXACT


cdef inline int read_guid_name(
    Scanner* scanner, NameKind kind, Field field, uint32_t suffixes, Expected expected, Name* name
) noexcept nogil:
    """PublicName (2.1.3), Machine or Connector (2.1.6): a GUID, and with EXTENDED perhaps one of ``suffixes``."""
    name.kind = <uint8_t>kind
    if read_guid(scanner, field, name.guid) != 0:
        return -1
    if scanner.options & EXTENDED:
        return read_suffix(scanner, suffixes, expected, name)
    return read_end(scanner, field, END)


cdef inline int read_private(Scanner* scanner, Name* name) noexcept nogil:
    """PrivateName: 2.1.4."""
    cdef TextSpan digits
    cdef size_t i
    name.kind = KIND_PRIVATE
    if read_guid(scanner, Field.ComputerGuid, name.guid) != 0:
        return -1
    if not is_next(scanner, c"\\"):
        return refuse(scanner, BAD_TEXT, Field.ComputerGuid, BACKSLASH)
    scanner.at += 1
    if read_text(scanner, HEXADECIMAL, MAX_PRIVATE_ID, Field.PrivateQueueIdentifier, HEXADECIMAL_DIGIT, &digits) != 0:
        return -1
    for i in range(digits.length):
        name.private_id = name.private_id << 4 | HEX_VALUE[scanner.text[digits.offset + i]]
    return read_suffix(scanner, 1 << SUFFIX_JOURNAL, JOURNAL_OR_END, name)


cdef int read_distribution_list(Scanner* scanner, Name* name) noexcept nogil:
    """DistributionListName: 2.1.5."""
    name.kind = KIND_DISTRIBUTION_LIST
    if read_guid(scanner, Field.DistributionListGuid, name.guid) != 0:
        return -1
    if scanner.at == scanner.end:
        return 0
    if not is_next(scanner, c"@"):
        return refuse(scanner, BAD_TEXT, Field.DistributionListGuid, DOMAIN_OR_END)
    scanner.at += 1
    if read_text(scanner, VISIBLE, MAX_DOMAIN, Field.DomainName, DOMAIN_CHARACTER, &name.domain) != 0:
        return -1
    return read_end(scanner, Field.DomainName, DOMAIN_CHARACTER)


cdef int read_multicast(Scanner* scanner, Name* name) noexcept nogil:
    """Multicast: 2.1.6. Port is 0 to 65535, as the comments of its rule say."""
    cdef size_t start = scanner.at
    cdef uint32_t port = 0
    name.kind = KIND_MULTICAST
    if read_ipv4(scanner, 224, 239, Field.Address, MULTICAST_OCTET) != 0:
        return -1
    name.address.offset = <uint32_t>start
    name.address.length = <uint32_t>(scanner.at - start)
    if not is_next(scanner, c":"):
        return refuse(scanner, BAD_TEXT, Field.Address, COLON)
    scanner.at += 1
    if read_number(scanner, 0, 65535, 5, Field.Address_Port, MULTICAST_PORT, &port) != 0:
        return -1
    name.port = <uint16_t>port
    return read_end(scanner, Field.Address_Port, END)


cdef inline int read_format_name(Scanner* scanner, Name* name) noexcept nogil:
    if skip(scanner, b"direct="):
        return read_direct(scanner, name)
    if skip(scanner, b"private="):
        return read_private(scanner, name)
    if skip(scanner, b"public="):
        return read_guid_name(scanner, KIND_PUBLIC, Field.QueueGuid, 1 << SUFFIX_JOURNAL, JOURNAL_OR_END, name)
    if skip(scanner, b"dl="):
        return read_distribution_list(scanner, name)
    if skip(scanner, b"multicast="):
        return read_multicast(scanner, name)
    if skip(scanner, b"machine="):
        return read_guid_name(scanner, KIND_MACHINE, Field.Guid, MACHINE_SUFFIXES, SUFFIX_OR_END, name)
    if skip(scanner, b"connector="):
        return read_guid_name(scanner, KIND_CONNECTOR, Field.Guid, 1 << SUFFIX_XACTONLY, XACTONLY_OR_END, name)
    return refuse_word(
        scanner, b"direct= public= private= dl= machine= connector= multicast= ", BAD_TYPE, Field.FormatName, KEYWORD
    )


# --- Path names: 2.1.1 ---


cdef bint is_queue_name(const Scanner* scanner) noexcept nogil:
    """Return True if the rest of a path name is a QueueName."""
    cdef Scanner trial = scanner[0]
    cdef Fault ignored
    cdef Name name
    trial.fault = &ignored
    return read_queue_name(&trial, False, &name) == 0


cdef int read_path_name(Scanner* scanner, Name* name) noexcept nogil:
    """QueuePathName.

    A computer may contain backslashes and ends at the last one. ``private$`` before that one belongs to the queue,
    unless the text is a path name only when it belongs to the computer.
    """
    cdef size_t visible = run_of(scanner, VISIBLE, scanner.size)
    cdef size_t computer = visible
    cdef Scanner prefix = scanner[0]
    cdef Expected expected
    name.kind = KIND_PATH_NAME
    name.queue_type = QUEUE_PUBLIC
    while computer and scanner.text[computer - 1] != c"\\":
        computer -= 1
    if computer == 0 and 0 < visible <= MAX_COMPUTER:
        expected = BACKSLASH if visible == scanner.size else COMPUTER_CHARACTER
        return refuse_at(scanner, visible, BAD_TEXT, Field.Computer, expected)
    if computer == 0 and visible:
        return refuse_at(scanner, MAX_COMPUTER, TOO_LARGE, Field.Computer, COMPUTER_CHARACTER)
    if computer <= 1:
        return refuse_at(scanner, 0, BAD_TEXT, Field.Computer, COMPUTER_CHARACTER)
    computer -= 1
    scanner.at = computer + 1
    if computer > 9:
        prefix.at = computer - 9
        if matching(&prefix, b"\\private$", 9) == 9 and (
            matching(scanner, b"system$;", 8) != 8 or is_queue_name(scanner)
        ):
            computer -= 9
            name.queue_type = QUEUE_PRIVATE
    if computer > MAX_COMPUTER:
        return refuse_at(scanner, MAX_COMPUTER, TOO_LARGE, Field.Computer, COMPUTER_CHARACTER)
    name.address.length = <uint32_t>computer
    if name.queue_type == QUEUE_PUBLIC and skip(scanner, b"system$;"):
        name.queue_type = QUEUE_SYSTEM
    return read_queue_name(scanner, False, name)


# --- One element ---


cdef inline int check_element(const Scanner* scanner, size_t start, const Name* name) noexcept nogil:
    """Refuse the names that 2.1.7 excludes from a multiple-element name."""
    cdef size_t semicolon
    if name.kind == KIND_MACHINE:
        return refuse_at(scanner, start, BAD_TYPE, Field.FormatName, LIST_ELEMENT)
    if name.suffix == SUFFIX_NONE or name.suffix == SUFFIX_XACTONLY:
        return 0
    semicolon = scanner.end - 1
    while scanner.text[semicolon] != c";":
        semicolon -= 1
    return refuse_at(scanner, semicolon, BAD_VALUE, Field.Suffix, WRITABLE_QUEUE)


cdef int read_element(
    const uint8_t* text, size_t size, size_t* at, uint32_t options, Name* name, Fault* fault
) noexcept nogil:
    """Read the name that begins at ``at`` and ends at a comma or with the text; moves ``at`` past the comma.

    After the last name ``at`` is ``size + 1``. A comma always separates names, even where MSMQ 1.0 allows it in a
    QueueName and 2.1.5 in a DomainName.
    """
    cdef Scanner scanner
    cdef size_t start = at[0]
    cdef const void* comma
    memset(name, 0, sizeof(Name))
    scanner.text = text
    scanner.at = start
    scanner.size = size
    scanner.end = size
    scanner.options = options
    scanner.fault = fault
    if options & PATH_NAME:
        at[0] = size + 1
        return read_path_name(&scanner, name)
    comma = memchr(text + start, c",", size - start)
    if comma != NULL:
        scanner.end = <size_t>(<const uint8_t*>comma - text)
    if read_format_name(&scanner, name) != 0:
        return -1
    at[0] = scanner.end + 1
    if start != 0 or scanner.end != size:
        return check_element(&scanner, start, name)
    return 0
