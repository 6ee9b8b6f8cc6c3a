"""The texts of the reasons why records cannot be read."""

MAX_PROBLEMS: int
REASONS: dict[int, str]
