"""Written by `make build` from the annotations in _scan.pyx; do not edit."""

from typing import Any

def scan(
    text: str,
    *,
    extended: bool = False,
    http_slashes: bool = False,
    spx: bool = False,
    path_name: bool = False,
    any_letters: bool = False,
) -> list[dict[str, Any]]:
    """The parts of each element of a format name, or of a path name; None where a kind has no such part.

    Only a multiple-element name has more than one element.

    Raises
    ------
    FormatNameError
        The text is not such a name.
    """
