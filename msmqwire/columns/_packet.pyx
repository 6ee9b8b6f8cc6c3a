"""What all packets do as values, whichever their protocol."""

from inspect import signature

from msmqwire.errors import require

if False:  # for type checkers: see stubs.py
    from typing import Any, Self

    from msmqwire.columns.schema import Table


cdef class WirePacket:
    """The base class of the packets of all protocols: values over the bytes that they were decoded from.

    A subclass has a ``__signature__`` whose parameters are attributes of its objects as well, or ``_parts``.

    Attributes
    ----------
    table : Table
        The table that has a row for the packet.
    """

    if False:
        table: Table

    cdef tuple payload(self):
        """The bytes that the packet shows, and the options with which ``decode_batch`` reads them."""
        raise NotImplementedError  # the packets of each protocol have theirs

    cdef str layout(self):
        """The name of its byte map."""
        return self.table.name

    def _parts(self):
        """The keywords that build it, with their values."""
        for name in signature(type(self)).parameters:
            yield name, getattr(self, name)

    def replace(self, **changes: Any) -> Self:
        """Return a packet with other values for some keywords of its class; ``copy.replace`` does the same.

        Values that follow from others, such as ``allocation_body_size`` from ``body``, follow from the new ones.
        Reserved bits and bytes after the last field are not kept.

        Raises
        ------
        EncodeError
            The specification does not let a sender send the packet.
        TypeError
            The class has no such keyword.

        Examples
        --------
        >>> from uuid import UUID
        >>> from msmqwire import mqsd
        >>> request = mqsd.decode(bytes.fromhex("00010000") + bytes(48))
        >>> request.replace(site_id=UUID(int=7)).site_id
        UUID('00000000-0000-0000-0000-000000000007')
        """
        return type(self)(**{**dict(self._parts()), **changes})

    def __replace__(self, **changes: Any) -> Self:
        return self.replace(**changes)

    def to_dict(self) -> dict[str, Any]:
        """Return the packet as a row of its table with values of JSON; needs pyarrow.

        It is the object that ``msmqwire decode`` writes of the packet, without the columns of captures, and what
        ``msmqwire encode`` reads: GUIDs and times are text, bytes hexadecimal, a lone surrogate is U+FFFD. For many
        packets, ``decode_batch(payloads).to_pylist()`` takes less time.

        Examples
        --------
        >>> from msmqwire import mqsd
        >>> mqsd.decode(bytes.fromhex("00010000") + bytes(48)).to_dict()["site_id"]
        '00000000-0000-0000-0000-000000000000'
        """
        (row,) = self._rows()
        return {**row, "violations": [*self.violations]}

    def show(self) -> None:
        """Print the byte map: a line with the offset, the bytes, the name and the value of each field.

        The lines are those of ``msmqwire decode --hex``. Of a change in a notification they are those of a message with
        this change alone.

        Examples
        --------
        >>> from msmqwire import mqqb
        >>> mqqb.Ping(cookie=4, queue_manager="557358d1-9150-9595-4997-b6e611ea26c6").show()
             0  00 00                                                Ping.Flags  0
             2  48 55                                                Ping.Signature  21832 (0x5548)
             4  04 00 00 00                                          Ping.Cookie  4
             8  d1 58 73 55 50 91 95 95 49 97 b6 e6 11 ea 26 c6      Ping.QMGuid  557358d1-9150-9595-4997-b6e611ea26c6
        """
        from msmqwire.columns.byte_map import byte_lines

        for line in byte_lines(self.table, self.layout(), self.payload()[0]):
            print(line)

    def _rows(self):
        """The rows of the packet with the values of JSON."""
        require("pyarrow", "to_dict")
        from msmqwire.columns.json_text import json_objects

        data, options = self.payload()
        return json_objects(self.table.codec["decode_batch"]([data], **options))
