"""The texts of the reasons why records cannot be read, and the names of what is not supported."""

LINK_NAMES: dict[int, str]
MAX_LINK_TYPE: int
MAX_PROBLEMS: int
REASONS: dict[int, str]
UNSUPPORTED_ENCAPSULATIONS: dict[int, str]
