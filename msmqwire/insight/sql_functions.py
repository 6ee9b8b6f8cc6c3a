"""The functions that sections and rules may call, and the helpers among them."""

from __future__ import annotations

from pathlib import Path

#: The places of a row of a result that are kept.
MOST_FRAMES = 10
#: The lowest places of a group that ``first_places`` has: rows of one packet have one place, so some may be equal.
LOWEST = 2 * MOST_FRAMES


def _first_places(expression: str) -> str:
    return f"CREATE OR REPLACE MACRO first_places(place) AS {expression}"


#: The statement that lets groups have their lowest places.
LOWEST_PLACES = _first_places(f"min(place, {LOWEST})")
#: The statement that lets groups have the lowest places that differ, which takes three times as long.
DIFFERENT_PLACES = _first_places(f"min(DISTINCT place, {MOST_FRAMES})")
#: The statement that lets groups have their first place only.
ONE_PLACE = _first_places("CASE WHEN min(place) IS NOT NULL THEN [min(place)] END")

#: Functions of DuckDB that read nothing but their arguments, operators, and the helpers.
FUNCTIONS = frozenset(Path(__file__).with_name("queries").joinpath("functions.txt").read_text("utf-8").split())
#: The statements that define the helpers.
MACROS = (
    LOWEST_PLACES,
    "CREATE OR REPLACE MACRO named_bits(bits, names) AS "
    "[name FOR name, number IN names IF bits & (1 << (number - 1)) <> 0]",
)
