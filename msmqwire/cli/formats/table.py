"""The table for people, drawn as rows come, in widths that the first rows need.

``pyarrow.compute`` draws all rows at once; only texts that must be folded are folded one at a time.
"""

from __future__ import annotations

import io
import re
import shutil
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import TYPE_CHECKING

import pyarrow as pa
from rich.cells import cell_len
from rich.color import ColorSystem
from rich.console import Console
from rich.style import Style
from rich.text import Text

from msmqwire.capture.schema import CAPTURE
from msmqwire.cli.formats.people import MOST_ITEMS, column, filled, items, phrase, route, shown, title, titles_of
from msmqwire.columns.json_text import Array, joined, lists_like, pc, replaced, utf8_of
from msmqwire.errors import printable

if TYPE_CHECKING:
    from msmqwire.cli.target import Sink

_CHUNK = 4096  # rows drawn at once
_FIRST = 200  # rows that give the widths
_LONGEST_BESIDE = 44  # a longer text stands below its label
_GUID = 36
_GAP = "  "
_MOST_REPEATED = 1000  # of RE2
_LONGEST_KEPT = 1000  # characters of a line whose folds are kept: a text may be one line of 2 MiB
# Characters that may take no column of a terminal or two; the Latin ones, arrow and ellipsis take one
_MAYBE_WIDE = re.compile("[^ -\u02ff→…]")
_MAYBE_WIDE_RE2 = r"[^ -\x{2ff}→…\n]"
_STYLES = re.compile("\x1b\\[[0-9;]*m")
_WORD = re.compile(r"\s*\S+\s*|\s+")


class Writer:
    """Draws batches below one heading, in columns of the same widths; as records where the columns do not fit.

    A table with its capture columns is drawn as a list of packets: place and time of each, and below each other its
    fields. The complete table of notifications is drawn likewise. Other columns are drawn as they are.
    """

    def __init__(self, sink: Sink, schema: pa.Schema, *, table: str = "") -> None:
        self._sink = sink
        self._terminal = _Terminal(sink)
        names = schema.names
        self._layout = (_Packets if set(CAPTURE.names) <= set(names) else _Columns)(names, self._terminal)
        self._widths: list[int] | None = None
        self._begun = False
        self._file: str | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Draw the rows of one batch."""
        for start in range(0, batch.num_rows, _CHUNK):
            rows = batch.slice(start, _CHUNK)
            for file, group in _by_file(rows) if self._layout.by_file else [(None, rows)]:
                self._draw(file, self._layout.cells(group))
            self._sink.flush()

    def finish(self) -> None:
        """Write that there are no rows, if there are none."""
        if not self._begun:
            self._sink.write((self._terminal.styled("no rows", "dim") + "\n").encode())

    def _draw(self, file: str | None, cells: list[Array]) -> None:
        headers, layout = self._layout.headers, self._layout
        heading = not self._begun or file != self._file
        if heading:
            first = list(zip(*(cell.slice(0, _FIRST).to_pylist() for cell in cells), strict=True))
            self._widths = _widths(headers, first, self._terminal.width, layout.last)
            lines = [] if file is None else [self._terminal.styled(printable(file), "bold")]
            if self._widths is not None:
                heads = [self._terminal.styled(header, "bold") for header in headers]
                rule = "─" * (sum(self._widths) + len(_GAP) * (len(headers) - 1))
                lines += [*_beside(heads, self._widths, layout.numbers), rule]
            self._sink.write("".join([f"{line}\n" for line in lines]).encode())
        self._begun, self._file = True, file
        if self._widths is None:
            drawn = layout.records(cells, self._terminal.width)
        else:
            drawn = _drawn_beside(cells, self._widths, layout.numbers)
        self._sink.write(utf8_of(joined(drawn, "\n")))


class _Terminal:
    """The width of the output, and the styles that it shows."""

    def __init__(self, sink: Sink) -> None:
        file = io.TextIOWrapper(sink)
        console = Console(file=file)
        # COLUMNS is 0 where a terminal does not know its size
        self.width = console.width or shutil.get_terminal_size().columns
        self._is_plain = console.color_system is None or console.legacy_windows
        self._has_colours = not console.no_color
        file.detach()

    def styled(self, text: str, style: str) -> str:
        """A text in a style."""
        before, after = self.style(style)
        return before + text + after

    def style(self, style: str) -> tuple[str, str]:
        """What begins and ends a style."""
        if self._is_plain:
            return "", ""
        ink = Style.parse(style)
        ink = ink if self._has_colours else ink.without_color
        before, _, after = ink.render("x", color_system=ColorSystem.STANDARD).partition("x")
        return before, after


class _Columns:
    """Each column as it is, with whole texts; a record has a line for each."""

    by_file = False
    last = 24
    numbers: frozenset[int] = frozenset()

    def __init__(self, names: list[str], terminal: _Terminal) -> None:
        self.headers = tuple(map(printable, names))
        longest = max(map(len, self.headers), default=0)
        self._labels = [terminal.styled(f"{header:{longest}} ", "dim") for header in self.headers]

    def cells(self, rows: pa.RecordBatch) -> list[Array]:
        return [pc.fill_null(column(rows, name, whole=True), "") for name in rows.schema.names]

    def records(self, cells: list[Array], width: int) -> Array:
        parts: list[Array | str] = []
        for label, cell in zip(self._labels, cells, strict=True):
            size = _size(label)
            parts += [label, _folded_texts(cell, max(1, width - size), margin=size), "\n"]
        return joined(*parts)


class _Packets:
    """A packet a row, with a line for each field that is not null, zero or empty."""

    by_file = True
    last = 21 + _GUID  # a label and a GUID
    numbers = frozenset({0})
    headers: tuple[str, ...] = ("frame", "time (UTC)", "from → to", "packet")

    def __init__(self, names: list[str], terminal: _Terminal) -> None:
        self._terminal = terminal
        self._titles = titles_of(names)
        apart = {*CAPTURE.names, *self._titles, "fault", "violations"}
        self._fields = [name for name in names if name not in apart]

    def cells(self, rows: pa.RecordBatch) -> list[Array]:
        place = [shown(rows["frame"]), column(rows, "time"), route(rows)]
        return [*(pc.fill_null(cell, "") for cell in place), self._packets(rows)]

    def records(self, cells: list[Array], width: int) -> Array:
        *place, packet = cells
        head = pc.binary_join_element_wise(*place, "  ")
        return joined(_folded_texts(head, width), "\n", _folded_texts(packet, width), "\n")

    def _packets(self, rows: pa.RecordBatch) -> Array:
        fields = {name: filled(rows, name) for name in self._fields}
        fields = {name: values for name, values in fields.items() if values.null_count < len(rows)}
        longest: Array = pa.repeat(0, len(rows))
        for name, values in fields.items():
            longest = pc.if_else(values.is_valid(), pc.max_element_wise(longest, len(name)), longest)
        lines = [self._heads(rows)]
        lines += [self._labelled(rows[name], name, values, longest) for name, values in fields.items()]
        return pc.fill_null(phrase(lines, "\n", len(rows)), "")

    def _heads(self, rows: pa.RecordBatch) -> Array:
        """The fault of each row, or its title and violations."""
        heads = self._sound_heads(rows)
        if "fault" in rows.schema.names and rows["fault"].null_count < len(rows):
            before, after = self._terminal.style("bold red")
            heads = pc.coalesce(joined(f"{before}fault {after}", shown(rows["fault"])), heads)
        return heads

    def _sound_heads(self, rows: pa.RecordBatch) -> Array:
        before, after = self._terminal.style("bold cyan")
        titles = joined(before, pc.fill_null(title(rows, self._titles), ""), after)
        if "violations" not in rows.schema.names:
            return titles
        before, after = self._terminal.style("yellow")
        violations: Array = rows["violations"]
        marked = lists_like(violations, joined(f"  {before}! ", shown(violations.flatten()), after))
        return joined(titles, pc.binary_join(marked, ""))

    def _labelled(self, array: Array, name: str, values: Array, longest: Array) -> Array:
        """The lines of each value: a list of properties, or of long items, has a line for each item."""
        before, after = self._terminal.style("dim")
        sizes = range(pc.max(longest).as_py() + 1)
        beside, below = values, values
        if pa.types.is_list(array.type):
            each = items(array, None if name == "properties" else MOST_ITEMS)
            margins = pa.array(["\n" + " " * (size + 2) for size in sizes]).take(longest)
            apart = values.is_valid() if name == "properties" else pc.greater(pc.utf8_length(values), _GUID)
            beside = pc.if_else(apart, pc.binary_join(each, margins), values)
            below = pc.if_else(apart, pc.binary_join(each, "\n  "), values)
        labels = pa.array([f"{before} {name:{size}}{after} " for size in sizes]).take(longest)
        is_long = pc.match_substring_regex(below, f"^[^\n]{{{_LONGEST_BESIDE + 1},}}")
        return pc.if_else(is_long, joined(f"{before} {name}{after}\n  ", below), joined(labels, beside))


def _by_file(rows: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    runs = pc.run_end_encode(rows["file"])
    start = 0
    for file, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield file, rows.slice(start, end - start)
        start = end


def _drawn_beside(cells: list[Array], widths: list[int], numbers: frozenset[int]) -> Array:
    """Cells beside each other; rows with a cell to be folded, other than the last one, are drawn a row at a time."""
    *front, last = cells
    unfit = pa.repeat(False, len(last))
    padded = []
    for at, (cell, width) in enumerate(zip(front, widths, strict=False)):
        unfit = pc.or_(unfit, pc.match_substring_regex(cell, _unfit(width)))
        padded.append(pc.utf8_lpad(cell, width) if at in numbers else pc.utf8_rpad(cell, width))
    margin = sum(widths[:-1]) + len(_GAP) * len(front)
    lines = pc.binary_join_element_wise(*padded, _folded_texts(last, widths[-1], margin=margin), _GAP)
    lines = pc.utf8_rtrim(lines, " ")
    if not pc.any(unfit).as_py():
        return lines
    rows = zip(*(cell.filter(unfit).to_pylist() for cell in cells), strict=True)
    folded = ["\n".join(_beside(row, widths, numbers)) for row in rows]
    return pc.replace_with_mask(lines, unfit, pa.array(folded, pa.string()))


def _beside(row: Sequence[str], widths: list[int], numbers: frozenset[int]) -> Iterator[str]:
    """The lines of cells beside each other, folded to their widths."""
    *front, last = [_folded_lines(cell, width) for cell, width in zip(row, widths, strict=True)]
    height = max(map(len, front), default=0)
    for lines in zip_longest(*front, last[:height], fillvalue=""):
        padded = []
        for at, (line, width) in enumerate(zip(lines, widths, strict=True)):
            blank = " " * (width - _size(line))
            padded.append(blank + line if at in numbers else line + blank)
        yield _GAP.join(padded).rstrip(" ")
    margin = " " * (sum(widths[:-1]) + len(_GAP) * len(front))
    yield from [margin + line for line in last[height:]]


def _folded_texts(array: Array, width: int, *, margin: int = 0) -> Array:
    """Texts with lines no longer than a width; blanks are before all lines but the first."""
    folded = replaced(array, _unfit(width), lambda value: "\n".join(_folded_lines(value, width)))
    return pc.replace_substring(folded, "\n", "\n" + " " * margin)


def _unfit(width: int) -> str:
    """The pattern of RE2 of texts that may have a line longer than a width."""
    limit = min(width, _MOST_REPEATED - 1) + 1
    return f"[^\n]{{{limit},}}|{_MAYBE_WIDE_RE2}"


def _size(text: str) -> int:
    """The columns of a terminal that text takes."""
    return cell_len(_STYLES.sub("", text)) if _MAYBE_WIDE.search(text) else len(text)


def _folded_lines(text: str, width: int) -> list[str]:
    """Lines no longer than a width, folded at blanks, and words at any character; folded lines lose their style."""
    lines: list[str] = []
    for line in text.split("\n"):
        folds = _short_folds if len(line) <= _LONGEST_KEPT else _folds
        lines += [line] if _size(line) <= width else folds(_STYLES.sub("", line), width)
    return lines


def _folds(line: str, width: int) -> list[str]:
    """A line folded as rich does it, which takes five times as long."""
    if _MAYBE_WIDE.search(line):
        return [part.plain.rstrip() for part in Text(line).wrap(_CONSOLE, width, overflow="fold")]
    breaks = [0]
    used = 0
    for match in _WORD.finditer(line):
        word, start = match[0], match.start()
        size = len(word.rstrip())
        if size <= width - used:
            used += len(word)
        elif size <= width:
            breaks.append(start)
            used = len(word)
        else:
            # A word that fits in no line begins a new one
            breaks += range(start or width, start + len(word), width)
            used = len(word) % width or width
    parts = zip(breaks, [*breaks[1:], len(line)], strict=True)
    return [line[begin:end].rstrip() for begin, end in parts]


_short_folds = lru_cache(maxsize=4096)(_folds)
_CONSOLE = Console(file=io.StringIO())


def _widths(headers: tuple[str, ...], rows: Sequence[Sequence[str]], width: int, keep: int) -> list[int] | None:
    """A width for each column: what the first rows need, and the rest for the last one; None if they do not fit.

    The last column needs ``keep``, if it is that wide. To make space for it, columns before it are folded at blanks,
    first those where that saves most.
    """
    lines = [[header, *(line for row in rows for line in row[at].split("\n"))] for at, header in enumerate(headers)]
    available = width - len(_GAP) * (len(headers) - 1)
    *front, last = [max(map(_size, column)) for column in lines]
    wanted = min(last, keep)
    savings = [column - _folded(text, 0) for column, text in zip(front, lines, strict=False)]
    for at in sorted(range(len(front)), key=savings.__getitem__, reverse=True):
        excess = sum(front) + wanted - available
        if excess > 0:
            front[at] = _folded(lines[at], front[at] - excess)
    rest = available - sum(front)
    return [*front, rest] if rest >= wanted else None


def _folded(lines: list[str], width: int) -> int:
    """The width of lines that are folded at blanks to ``width``, or to their longest word if that is wider."""
    longest = 0
    for line in lines:
        used = 0
        # An arrow stays with the word before it
        for word in line.replace(" →", "→→").split(" "):
            size = _size(word)
            used = used + 1 + size if used and used + 1 + size <= width else size
            longest = max(longest, used)
    return longest
