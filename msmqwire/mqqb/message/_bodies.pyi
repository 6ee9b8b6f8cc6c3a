"""Written by `make build` from the annotations in _bodies.pyx; do not edit."""

from typing_extensions import Buffer

def read_body(body: Buffer, body_type: int, encrypted: bool) -> tuple[str, str | None]:
    """The format of a body, one of ``BODY_FORMATS``, and its text; None where it has none.

    The body may be any bytes-like object, such as ``body`` of a message or a value of the column ``body``.

    A body whose BodyType says neither text nor value, or does not fit, is text when all of it is UTF-8 or, after a byte
    order mark or before ``<``, UTF-16, without control characters. U+0000 at the end are left out. So is XML or JSON in
    UTF-16, XML in the encoding that it declares, HL7 (in MLLP or not), EDIFACT, and a string or text of an object of
    .NET's BinaryFormatter. VT_LPSTR that is not UTF-8 is ``ansi_text``, read as windows-1252. The text of ``net_msmq``,
    a message of WCF ([MC-NMF]), is the address that it goes to. Wrong bytes of a declared encoding become U+FFFD.

    Examples
    --------
    >>> read_body("Größe".encode("utf-16-le"), 8, False)
    ('text', 'Größe')
    >>> read_body(b"<order/>", 0, False), read_body(b"\\x11\\0\\0\\0", 3, False)
    (('xml', '<order/>'), ('value', '17'))
    """

def write_body(text: str, body_type: int) -> bytes:
    """Return the body of a text: in UTF-16 where BodyType says so, else in UTF-8.

    Raises
    ------
    EncodeError
        A body of this type cannot have this text.
    """
