"""The one door to DuckDB: a database that reads no files, and statements as its parser sees them."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from msmqwire.errors import MsmqWireError, require

if TYPE_CHECKING:
    import duckdb

MEMORY = "1GB"
_INTERRUPT_SECONDS = 0.1  # until a query that had not begun is interrupted again
_SHELL = "/bin/sh"
_LOCK = "SET lock_configuration = true"
_Result = TypeVar("_Result")
# Functions that are called without parentheses
_VALUES = frozenset(
    {
        *(f"current_{name}" for name in ("catalog", "database", "date", "role", "schema", "time", "timestamp", "user")),
        *("localtime", "localtimestamp", "session_user", "user"),
    }
)


class SqlError(MsmqWireError):
    """DuckDB refuses a statement, or cannot finish it; the message is one line.

    Attributes
    ----------
    offset : int
        Of the mistake in the bytes of the statement; -1 if it is unknown.
    """

    def __init__(self, message: str, offset: int = -1) -> None:
        super().__init__(message)
        self.offset = offset


def load_duckdb(purpose: str = "SQL") -> Any:
    """Import DuckDB; raises SqlError where it is not installed."""
    try:
        return require("duckdb", purpose)
    except ModuleNotFoundError as error:
        raise SqlError(str(error)) from None


class OutOfMemoryError(SqlError):
    """A statement needs more memory than it may use, and cannot put the rest into files."""


class _TemporaryFolder:
    """A folder of this process for what DuckDB spills, which is removed even after a kill.

    A shell waits for the end of a pipe, which comes when the process ends however it ends.
    """

    def __init__(self) -> None:
        self.process = os.getpid()
        self.path = tempfile.mkdtemp(prefix="msmqwire-")
        self._watcher: subprocess.Popen[bytes] | None = None
        if os.path.exists(_SHELL):
            self._watcher = subprocess.Popen(
                [_SHELL, "-c", 'read -r _; rm -rf -- "$0"', self.path],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        atexit.register(self._remove)

    def _remove(self) -> None:
        if os.getpid() != self.process:
            return
        shutil.rmtree(self.path, ignore_errors=True)
        if self._watcher is not None and self._watcher.stdin is not None:
            self._watcher.stdin.close()
            self._watcher.wait()


_folder: _TemporaryFolder | None = None
_folder_lock = Lock()


def spill_folder() -> str:
    """Return a new folder for the temporary files of one database."""
    global _folder
    with _folder_lock:
        # A process that was forked has a folder of its own
        if _folder is None or _folder.process != os.getpid():
            _folder = _TemporaryFolder()
        return tempfile.mkdtemp(dir=_folder.path)


class Database:
    """A database in memory that cannot open files or the network, unless ``files``, nor change that.

    Parameters
    ----------
    memory : str
        The memory that DuckDB may use; rows beyond it go to temporary files, which ``close`` removes.
    threads : int
        The threads of a query.
    files : bool
        Let statements read and write files, and use the network.
    locked : bool
        The configuration cannot change; without it, after ``lock``.
    disk : str, optional
        The most bytes of temporary files; default: 90% of the free space.

    Attributes
    ----------
    connection : duckdb.DuckDBPyConnection
    folder : str
        The folder of its temporary files.
    """

    def __init__(
        self,
        *,
        memory: str = MEMORY,
        threads: int = 2,
        files: bool = False,
        locked: bool = True,
        disk: str | None = None,
    ) -> None:
        self._duckdb = load_duckdb()
        self.folder = spill_folder()
        config = {
            "memory_limit": memory, "threads": str(threads), "temp_directory": self.folder,
            # What was released goes back to the system, which counts it as used otherwise
            "allocator_flush_threshold": "16MB", "allocator_bulk_deallocation_flush_threshold": "16MB",
        }  # fmt: skip
        if disk is not None:
            config["max_temp_directory_size"] = disk
        try:
            with self.errors():
                self.connection: duckdb.DuckDBPyConnection = interruptible(lambda: self._opened(config, files, locked))
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def _opened(self, config: dict[str, str], files: bool, locked: bool) -> duckdb.DuckDBPyConnection:
        connection: duckdb.DuckDBPyConnection = self._duckdb.connect(config=config)
        # A notebook without ipywidgets refuses to change it, and shows none
        with contextlib.suppress(self._duckdb.Error):
            connection.execute("SET enable_progress_bar = false").fetchall()
        for statement in (
            "SET python_enable_replacements = false",
            "SET TimeZone = 'UTC'",
            # They have the place of a mistake
            "SET errors_as_json = true",
            *(() if files else ("SET enable_external_access = false",)),
            *((_LOCK,) if locked else ()),
        ):
            connection.execute(statement).fetchall()
        return connection

    def run(self, work: Callable[[duckdb.DuckDBPyConnection], _Result]) -> _Result:
        """Return what ``work`` makes of the connection; an interrupt ends it.

        Raises
        ------
        SqlError
            DuckDB refuses it, or cannot finish it.
        """
        with self.errors():
            return interruptible(lambda: work(self.connection), self.connection)

    def lock(self, threads: int) -> None:
        """Set the threads of further queries, and let no statement change the configuration."""
        self.execute(f"SET threads = {threads}")
        self.execute(_LOCK)

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows of a statement; errors as in ``run``."""
        return self.run(lambda connection: connection.execute(statement).fetchall())

    def errors(self) -> contextlib.AbstractContextManager[None]:
        """Errors of DuckDB, and of Arrow that reads its result, as ``SqlError``."""
        return _errors((self._duckdb.Error, pa.ArrowException))

    def close(self) -> None:
        """Close the database and remove its temporary files."""
        self.connection.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __del__(self) -> None:
        if hasattr(self, "connection"):
            self.close()


@contextlib.contextmanager
def _errors(caught: tuple[type[Exception], ...]) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if not isinstance(error, (*caught, OSError)):
            raise
        # Arrow raises what DuckDB raises while a result is read
        if isinstance(error, OSError) and '{"exception_type"' not in str(error):
            raise
        made = _as_sql_error(error)
        raise (OutOfMemoryError(str(made)) if "Out of Memory Error" in str(made) else made) from None


def one_line(error: Exception) -> str:
    """The message of an error of DuckDB as one line, without the statement that it repeats."""
    return str(_as_sql_error(error))


def _as_sql_error(error: Exception) -> SqlError:
    text, offset = str(error), -1
    kind, brace, detail = text.partition(": {")
    if brace:
        with contextlib.suppress(ValueError):
            known = json.loads("{" + detail)
            text = f"{kind}: {known['exception_message']}"
            offset = int(known.get("position", -1))
    lines = text.partition("\n\nLINE")[0].split("\n")
    return SqlError(" ".join(line.strip() for line in lines if line.strip()), offset)


def interruptible(work: Callable[[], _Result], database: duckdb.DuckDBPyConnection | None = None) -> _Result:
    """What DuckDB makes in another thread: in the main thread it holds signals back, and loses their exceptions."""
    working, left = Lock(), Event()

    def run() -> _Result:
        with working:
            if left.is_set():
                raise KeyboardInterrupt
            return work()

    with ThreadPoolExecutor(1) as threads:
        try:
            return threads.submit(run).result()
        finally:
            # An interrupt may come while the thread is started: then the executor does not wait for it
            left.set()
            while not working.acquire(timeout=_INTERRUPT_SECONDS):
                if database is not None:
                    database.interrupt()
            working.release()


# Statements as DuckDB's parser sees them


@dataclass(frozen=True)
class Name:
    """A name in a statement, and its offset in the text; -1 where it is not written."""

    text: str
    offset: int


@dataclass
class Statement:
    """What a SELECT names.

    Attributes
    ----------
    tables, functions : list of Name
        Tables that no common table expression of the statement defines, and functions.
    columns : set of str
        Words that may be columns, in lower case.
    stars : set of str
        The tables, in lower case, of which every column is named.
    simple : bool
        No part of it can be read twice.
    """

    tables: list[Name] = field(default_factory=list)
    functions: list[Name] = field(default_factory=list)
    columns: set[str] = field(default_factory=set)
    stars: set[str] = field(default_factory=set)
    aliases: set[str] = field(default_factory=set)
    simple: bool = True

    def check(self, tables: frozenset[str], functions: frozenset[str], text: str) -> None:
        """Refuse tables and functions that are not on the lists.

        Raises
        ------
        QueryError
        """
        for kind, known, names in (("table", tables, self.tables), ("function", functions, self.functions)):
            for name in names:
                if name.text.lower() not in known:
                    raise QueryError(f"no {kind} is called {name.text}", text, name.offset)
        for word in sorted(self.columns & _VALUES):
            raise QueryError(f"{word} is not allowed")


class QueryError(SqlError):
    """A mistake in a statement, at an offset of its text.

    Attributes
    ----------
    line, column : int
        Counted from 1; 0 if the place is unknown.
    """

    def __init__(self, message: str, text: str = "", offset: int = -1) -> None:
        super().__init__(message, offset)
        self.line = self.column = 0
        if 0 <= offset <= len(text.encode()):
            before = text.encode()[:offset].decode("utf-8", "replace")
            self.line = before.count("\n") + 1
            self.column = len(before) - (before.rfind("\n") + 1) + 1


@lru_cache(maxsize=256)
def parse(text: str) -> Statement | None:
    """Return what a statement names; None if it is no SELECT, or only comments.

    Raises
    ------
    QueryError
        DuckDB cannot parse it, or there are several statements.
    """
    parsed = json.loads(_parser().tree(text))
    if parsed["error"]:
        if parsed["error_type"] == "not implemented":
            return None
        raise QueryError(parsed["error_message"], text, int(parsed.get("position", -1)))
    if not parsed["statements"]:
        return None
    if len(parsed["statements"]) != 1:
        raise QueryError(f"one statement is needed, not {len(parsed['statements'])}")
    found = Statement()
    _walk(parsed["statements"][0], found, frozenset())
    # The name of a table is its whole row, unless a column has that name
    found.stars |= {each.text.lower() for each in found.tables} & found.columns - found.aliases
    return found


class _Parser:
    """A database that parses for all threads."""

    def __init__(self, files: bool) -> None:
        self._database, self._lock = Database(memory="64MB", threads=1, files=files), Lock()

    def tree(self, text: str) -> str:
        statement, values = "SELECT json_serialize_sql($1)", [text]
        with self._lock:
            ((answer,),) = self._database.run(lambda connection: connection.execute(statement, values).fetchall())
        return str(answer)

    def table_names(self, text: str) -> set[str]:
        with self._lock:
            return self._database.run(
                lambda connection: {
                    name
                    for each in connection.extract_statements(text)
                    for name in connection.get_table_names(each.query)
                }
            )


def table_names(text: str) -> set[str]:
    """Return the tables that statements of any kind name, which may name files."""
    return _parser(files=True).table_names(text)


@lru_cache(maxsize=2)
def _parser(files: bool = False) -> _Parser:
    return _Parser(files)


def _walk(node: Any, found: Statement, defined: frozenset[str]) -> None:
    """Collect the names in a part of a tree; ``defined`` are the common table expressions that it may use."""
    if isinstance(node, list):
        for each in node:
            _walk(each, found, defined)
        return
    if not isinstance(node, dict):
        return
    if node.get("type") == "RECURSIVE_CTE_NODE":
        defined |= {node["cte_name"].lower()}
        found.simple = False
    for each in (node.get("cte_map") or {}).get("map") or []:
        # An expression sees the ones before it
        found.simple = False
        _walk(each["value"], found, defined)
        defined |= {each["key"].lower()}
    kind, offset = node.get("type"), node.get("query_location", -1)
    if kind == "BASE_TABLE":
        name = node["table_name"]
        if node["schema_name"] or node["catalog_name"] or name.lower() not in defined:
            path = [part for part in (node["catalog_name"], node["schema_name"], name) if part]
            found.tables.append(Name(".".join(path), offset))
    elif kind == "COLUMN_REF":
        found.columns |= {each.lower() for each in node["column_names"]}
    elif kind == "SELECT_NODE":
        if _has_star(node["select_list"]):
            found.stars |= _sources(node["from_table"], defined)
        found.aliases |= {each["alias"].lower() for each in node["select_list"]}
    if "function_name" in node:
        # Older versions of DuckDB write the schema of its own functions
        schema = [] if node.get("schema") == "main" else [node.get("catalog"), node.get("schema")]
        path = [*schema, node["function_name"]]
        found.functions.append(Name(".".join(part for part in path if part), offset if offset < 1 << 63 else -1))
    for name, value in node.items():
        if name == "using_columns":
            found.columns |= {each.lower() for each in value}
        elif name == "ref_type" and value == "NATURAL":
            found.stars |= _sources(node, defined)
        elif name != "cte_map":
            _walk(value, found, defined)


def _has_star(node: Any) -> bool:
    """True if an expression has a star, as in ``SELECT *`` and ``COLUMNS(*)``."""
    if isinstance(node, list):
        return any(map(_has_star, node))
    if not isinstance(node, dict) or node.get("class") == "SUBQUERY":
        return False
    return node.get("type") == "STAR" or any(map(_has_star, node.values()))


def _sources(node: Any, defined: frozenset[str]) -> set[str]:
    """The tables of a FROM, without those of its subqueries."""
    kind = node.get("type")
    if kind == "BASE_TABLE":
        return {node["table_name"].lower()} - defined
    return _sources(node["left"], defined) | _sources(node["right"], defined) if kind == "JOIN" else set()
