"""What all packets do as values, whichever their protocol."""

from inspect import signature

if False:  # for type checkers: see stubs.py
    from typing import Any, Self


cdef class WirePacket:
    """The base class of the packets of all protocols: values over the bytes that they were decoded from.

    A subclass has a ``__signature__`` whose parameters are attributes of its objects as well, or ``_parts``.
    """

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
