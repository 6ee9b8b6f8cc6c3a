"""Written by `make build` from the annotations in _suspects.pyx; do not edit."""

from typing import Any

from numpy.typing import NDArray
import numpy as np

def suspects(values: Any) -> NDArray[np.bool_]:
    """Which values may be a serialised object, or have one: all that have a pair of ``is_pair`` and another byte.

    Parameters
    ----------
    values
        Bytes in any form that ``Payloads.of`` takes. A value may be in UTF-16.
    """
