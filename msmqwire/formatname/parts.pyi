"""One name, taken apart: [MS-MQMQ] 2.1."""

from uuid import UUID

from msmqwire.formatname.schema import Kind, Protocol, QueueType, Suffix

class Parts:
    """What the kernel finds in one name, as Python values; None where a kind has no such part."""

    kind: Kind
    guid: UUID | None
    private_id: int | None
    protocol: Protocol | None
    queue_type: QueueType | None
    suffix: Suffix | None
    address: str | None
    computer: str | None
    queue: str | None
    subqueue: str | None
    domain: str | None
    port: int | None

def scan(
    text: str, *, extended: bool = False, http_slashes: bool = False, spx: bool = False, path_name: bool = False
) -> list[Parts]:
    """The elements of a format name, one for all but a multiple-element name; or the parts of a path name.

    Raises
    ------
    FormatNameError
        The text is not such a name.
    """
