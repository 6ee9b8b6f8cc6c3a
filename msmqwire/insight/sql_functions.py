"""The functions that sections and rules may call, and the helpers among them."""

from __future__ import annotations

from pathlib import Path

#: The places of a row of a result that are kept.
MOST_FRAMES = 10
_FEW_ROWS = 20
#: The statement that lets groups have their first place only.
ONE_PLACE = "CREATE OR REPLACE MACRO first_places(place) AS CASE WHEN min(place) IS NOT NULL THEN [min(place)] END"

#: Functions of DuckDB that read nothing but their arguments, operators, and the helpers.
FUNCTIONS = frozenset(Path(__file__).with_name("queries").joinpath("functions.txt").read_text("utf-8").split())


def macros(rows_of_place: int) -> tuple[str, ...]:
    """Return the statements that define the helpers.

    Parameters
    ----------
    rows_of_place : int
        The most rows that have one place.
    """
    # So many of the lowest have ten places that differ; to find only those that differ takes three times as long
    places = f"min(place, {MOST_FRAMES * max(rows_of_place, 1)})"
    if rows_of_place > _FEW_ROWS:
        places = f"min(DISTINCT place, {MOST_FRAMES})"
    return (
        f"CREATE OR REPLACE MACRO first_places(place) AS {places}",
        "CREATE OR REPLACE MACRO named_bits(bits, names) AS "
        "[name FOR name, number IN names IF bits & (1 << (number - 1)) <> 0]",
    )
