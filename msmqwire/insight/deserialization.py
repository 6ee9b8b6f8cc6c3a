"""Bodies and ExtensionData with which a .NET program creates objects that their sender chose."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import ClassVar

from msmqwire.mqqb.message.readable import DOTNET_HEADER, NRBF_HEADER

#: The kinds, and what writes them.
KINDS = {
    "binary_formatter": "BinaryFormatter, in binary or in base64; not primitive values, strings and arrays of them",
    "soap_formatter": "SoapFormatter",
    "los_formatter": "LosFormatter with an object of BinaryFormatter",
    "json_type": "Json.NET with `$type`, of a class with which such objects are known to run code",
    "doctype": "XML with a DOCTYPE, which may read files and the network",
}
# [MS-NRBF] 2.6.1: SerializationHeaderRecord with version 1.0
_HEADER = re.compile(rb"\x00.{8}\x01\x00{7}", re.DOTALL)
_IN_BASE64 = re.compile(rb"AAEAAAD/////AQ[A-Za-z0-9+/]*")
# ObjectStateFormatter writes FF 01, and 32 before an object of BinaryFormatter
_LOS = re.compile(rb"\s*(/wE[A-Za-z0-9+/]{5,}={0,2})\s*")
_SOAP = re.compile(rb"schemas\.microsoft\.com/(?:soap/encoding/clr/|clr/)")
_TYPE = re.compile(rb'"(?:\$|\\u0024)type"\s*:\s*"\s*([\w.`+]+)')
# A comment ends at the first -->, which no attempt changes: else many comments would take exponential time
_DOCTYPE = re.compile(rb"\s*+(?:<\?xml(?>.*?\?>)\s*+)?+(?:<!--(?>.*?-->)\s*+)*+<!DOCTYPE\s(?!\s*html\s*>)", re.DOTALL)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

#: Classes of gadgets in ysoserial.net, by their full names.
GADGETS = frozenset(
    [
        "Microsoft.IdentityModel.Claims.WindowsClaimsIdentity",
        "Microsoft.VisualStudio.Text.Formatting.TextFormattingRunProperties",
        "System.Activities.Presentation.WorkflowDesigner",
        "System.CodeDom.Compiler.TempFileCollection",
        "System.Configuration.Install.AssemblyInstaller",
        "System.Data.DataSet",
        "System.Data.Services.Internal.ExpandedWrapper`2",
        "System.Diagnostics.Process",
        "System.Diagnostics.ProcessStartInfo",
        "System.Drawing.Design.ToolboxItemContainer",
        "System.IdentityModel.Tokens.SessionSecurityToken",
        "System.Management.Automation.PSObject",
        "System.Runtime.Remoting.ObjRef",
        "System.Security.Claims.ClaimsIdentity",
        "System.Security.Claims.ClaimsPrincipal",
        "System.Security.Principal.GenericPrincipal",
        "System.Security.Principal.WindowsIdentity",
        "System.Security.Principal.WindowsPrincipal",
        "System.Web.Security.RolePrincipal",
        "System.Windows.Data.ObjectDataProvider",
        "System.Windows.Forms.AxHost+State",
        "System.Windows.Forms.BindingSource",
        "System.Windows.Markup.XamlReader",
        "System.Windows.ResourceDictionary",
    ]
)
#: Words that serialised objects have; each with a pair of letters that ``_suspects.pyx`` looks for.
WORDS = ("AAEAAAD/////AQ", "/wE", "soap/encoding/clr/", "com/clr/", "$type", "u0024type", "<!DOCTYPE")
#: A pattern of Arrow that finds all of them, so that other bodies need no further look.
SUSPECT = "|".join(
    (DOTNET_HEADER, *(form for word in WORDS for form in (re.escape(word), r"\x00".join(map(re.escape, word)))))
)


def deserialized_kind(data: bytes) -> str | None:
    """Return what a program that deserializes a body would take it for, one of ``KINDS``; None for any other.

    Examples
    --------
    >>> deserialized_kind(b'{"$type": "System.Windows.Data.ObjectDataProvider, PresentationFramework"}')
    'json_type'
    >>> deserialized_kind(b'{"$type": "Shop.Orders.PlaceOrder, Shop"}')
    """
    if _HEADER.match(data):
        return None if _has_values_only(data) else "binary_formatter"
    # Text in UTF-16, as Latin
    text = data.removeprefix(b"\xff\xfe")
    text = text[::2] if text[1:2] == b"\0" else data.removeprefix(_BYTE_ORDER_MARK)
    if (found := _LOS.fullmatch(text)) and _has_object(_decoded(found[1])):
        return "los_formatter"
    if any(not _has_values_only(_decoded(each)) for each in _IN_BASE64.findall(text)):
        return "binary_formatter"
    if b"Envelope" in text and _SOAP.search(text):
        return "soap_formatter"
    if any(name.decode("ascii", "replace") in GADGETS for name in _TYPE.findall(text)):
        return "json_type"
    return "doctype" if _DOCTYPE.match(text) else None


def _decoded(text: bytes) -> bytes:
    text = text.rstrip(b"=")
    # A single sign at the end has no byte
    text = text[: len(text) - (len(text) % 4 == 1)]
    return base64.b64decode(text + b"=" * (-len(text) % 4))


def _has_object(data: bytes) -> bool:
    return data[:2] == b"\xff\x01" and re.search(rb"\x00\x01\x00\x00\x00\xff{4}\x01\x00\x00\x00", data) is not None


# [MS-NRBF] 2.1.2.3, the sizes of primitive values; those of text have their length
_SIZES = {
    1: 1, 2: 1, 6: 8, 7: 2, 8: 4, 9: 8, 10: 1, 11: 4, 12: 8, 13: 8, 14: 2, 15: 4, 16: 8, 17: 0,
}  # fmt: skip
_CHAR = 3
_TEXTS = (5, 18)
_PRIMITIVES = frozenset(
    f"System.{name}".encode()
    for name in [
        "Boolean",
        "Byte",
        "Char",
        "DateTime",
        "Decimal",
        "Double",
        "Guid",
        "Int16",
        "Int32",
        "Int64",
        "SByte",
        "Single",
        "TimeSpan",
        "UInt16",
        "UInt32",
        "UInt64",
    ]
)


class _Records:
    """Reads the records of BinaryFormatter that have no class but those of primitive values.

    Any of its methods raises IndexError or ValueError at another record, or at the end of the data.
    """

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, NRBF_HEADER

    def read(self) -> None:
        """Read the records up to the end."""
        while (kind := self._byte()) != 11:
            self._RECORDS[kind](self)

    def _take(self, size: int) -> bytes:
        if size > len(self._data) - self._at:
            raise IndexError(size)
        self._at += size
        return self._data[self._at - size : self._at]

    def _byte(self) -> int:
        return self._take(1)[0]

    def _number(self) -> int:
        return int.from_bytes(self._take(4), "little")

    def _text(self) -> bytes:
        length = 0
        for shift in range(0, 35, 7):
            part = self._byte()
            length |= (part & 127) << shift
            if part < 128:
                return self._take(length)
        raise ValueError("the length of a text has more than five bytes")

    def _values(self, kind: int, count: int) -> None:
        if kind in _SIZES:
            self._take(_SIZES[kind] * count)
        elif kind == _CHAR or kind in _TEXTS:
            for _ in range(count):
                if kind == _CHAR:
                    first = self._byte()
                    self._take((first >= 0xC0) + (first >= 0xE0) + (first >= 0xF0))
                else:
                    self._text()
        else:
            raise ValueError(kind)

    def _class(self) -> None:
        """A class with members and types: that of a primitive value in an object."""
        self._number()
        if self._text() not in _PRIMITIVES:
            raise ValueError("another class")
        members = self._number()
        for _ in range(members):
            self._text()
        if any(self._take(members)):
            raise ValueError("a member of another type")
        for kind in self._take(members):
            self._values(kind, 1)

    def _string(self) -> None:
        self._number()
        self._text()

    def _array(self) -> None:
        self._number()
        length = self._number()
        self._values(self._byte(), length)

    _RECORDS: ClassVar[dict[int, Callable[[_Records], object]]] = {
        4: _class,
        6: _string,
        8: lambda self: self._values(self._byte(), 1),
        9: lambda self: self._take(4),
        10: lambda self: None,
        13: lambda self: self._take(1),
        14: lambda self: self._take(4),
        15: _array,
        16: lambda self: self._take(8),
        17: lambda self: self._take(8),
    }


def _has_values_only(data: bytes) -> bool:
    """Whether an object of BinaryFormatter is a primitive value, a string, or an array of them."""
    try:
        _Records(data).read()
    except (LookupError, ValueError):
        return False
    return True
