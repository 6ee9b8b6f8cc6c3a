"""Batch: column buffers written by a kernel, seen through numpy and Arrow.

Columns are kept by path: ``"request_id"`` is a column, ``"servers"`` the offsets of a list, ``"servers[].name"`` a
member of its items, ``"properties[]?"`` the presence bytes of items whose members can be null. What a path holds
follows from the table's schema; three walks over the schema make the numpy views, the Arrow export and nothing else.
"""

from inspect import signature
from itertools import pairwise
from uuid import UUID

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

from msmqwire.columns._arrow cimport ArrowNode, array_capsule, arrow_node, record_batch, schema_capsule, stream_capsule
from msmqwire.columns._arrow_nodes cimport distinct_node, fault_node, guid_node, names_node, violations_node
from msmqwire.columns._buffer cimport Buffer, allocate, buffer_of_bytes
from msmqwire.columns._convert cimport (
    TextSpan, ascii_of_spans, bits_of_bools, bytes_of_spans, ends_of_guids, presence_bitmap, rows_of_items,
    swapped_guids, texts_of_spans, validity_of,
)
from msmqwire.columns._distinct cimport distinct_addresses, distinct_format_names
from msmqwire.columns._payloads cimport Payloads
from msmqwire.wire._fault cimport INCOMPLETE, Fault, field_name, needed_of, number_or_none
from msmqwire.wire._format_name cimport FormatName
from msmqwire.wire._transport cimport transport_at

import numpy as np

from msmqwire.columns.fields import bytes_needed
from msmqwire.columns.data_frames import pandas_frame, polars_frame, python_rows
from msmqwire.columns.display import SHOWN_ROWS, html_table, names_shown
from msmqwire.columns.schema import (
    ADDRESS, ASCII, BOOL, BYTES, FORMAT_NAME, GUID, TEXT, UTF8, Enumeration, Flags, ListOf, StructOf, current_names
)
from msmqwire.columns.views import (
    FAULT_DTYPE, RELEASED, SPAN_DTYPE, Contents, FaultEntry, ListColumn, TextColumn, Utf8Column
)
from msmqwire.errors import DecodeError, require
from msmqwire.wire._transport import TRANSPORT_NAMES
from msmqwire.wire.codes import FAULT_NAMES

if False:  # for type checkers: see stubs.py
    from collections.abc import Iterator
    from typing import Any, overload

    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from numpy.typing import NDArray

    from msmqwire.columns import names, views
    from msmqwire.columns._packet import WirePacket
    from msmqwire.columns.schema import GuidForm, Table

cdef Payloads NO_PAYLOADS = Payloads(b"", [0])


cdef class Hold:
    """Prevents that a Batch is overwritten, as long as it exists: Arrow exports and all that reads several values."""

    def __cinit__(self, Batch batch):
        batch.readable()
        self.batch = batch
        batch.holders += 1

    def __dealloc__(self):
        if self.batch is not None:
            self.batch.holders -= 1


cdef class Reading:
    """Prevents that the payloads of a Batch are released, as long as it exists: a ValueError if they already were."""

    def __cinit__(self, Batch batch):
        batch.readable()
        if batch.forgotten:
            raise ValueError(RELEASED)
        self.batch = batch
        batch.readers += 1

    def __dealloc__(self):
        if self.batch is not None:
            self.batch.readers -= 1


cdef class Batch:
    """The columns of many decoded payloads, a row for each.

    A Batch owns its buffers and keeps the payloads alive; its views keep the Batch alive. When the Batch is overwritten
    through ``out=``, its arrays show the new rows, and text, bytes and lists that were taken before are a ValueError.

    Examples
    --------
    >>> from msmqwire import mqsd
    >>> batch = mqsd.decode_batch([bytes.fromhex(
    ...     "0002000003a191f23ce34faba930be3a33e432dd01000000000000001200000062baeae6c6d1db11baac0003ff4e2d22"
    ...     "60baeae6c6d1db11baac0003ff4e2d22310030006e00740034007000650063000000"), b"oops"])
    >>> batch["servers"].values["name"].text(0)
    'nt4pec'
    >>> batch.fault(1)
    FaultEntry(code='bad_type', field='Type', offset=1, value=111, needed=None)

    Attributes
    ----------
    table : Table
    columns : tuple of str
        Names of the columns that it holds, in the order in which they were requested.
    payloads : Payloads
    """

    table: Table
    columns: tuple[str, ...]
    payloads: Payloads

    __signature__ = signature(lambda: None)

    def __init__(self):
        raise TypeError("a Batch is made by decode_batch()")

    def __len__(self) -> int:
        return <Py_ssize_t>self.length

    def __repr__(self):
        state = "being written" if self.writing else f"{self.fault_count} with faults"
        return f"<Batch of {self.length} {self.table.name} rows, {names_shown(self.columns)}, {state}>"

    def _repr_html_(self) -> str:
        _hold = Hold(self)  # whose memory has the first rows
        rows = [] if self.forgotten else python_rows(self.head(SHOWN_ROWS).to_arrow(guid="text"))
        return html_table(repr(self), rows)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.columns)

    def __reduce__(self):
        raise TypeError(
            "a Batch refers to the memory of its payloads and cannot be pickled or copied: pickle batch.payloads and"
            " decode them again, or pickle batch.to_arrow()"
        )

    if False:
        @overload
        def __getitem__(self, name: names.Uint8) -> NDArray[np.uint8]: ...
        @overload
        def __getitem__(self, name: names.Uint16) -> NDArray[np.uint16]: ...
        @overload
        def __getitem__(self, name: names.Uint32) -> NDArray[np.uint32]: ...
        @overload
        def __getitem__(self, name: names.Uint64) -> NDArray[np.uint64]: ...
        @overload
        def __getitem__(self, name: names.Bool) -> NDArray[np.bool_]: ...
        @overload
        def __getitem__(self, name: names.Time) -> NDArray[np.datetime64]: ...
        @overload
        def __getitem__(self, name: names.Record) -> NDArray[np.void]: ...
        @overload
        def __getitem__(self, name: names.List) -> views.ListColumn: ...
        @overload
        def __getitem__(self, name: names.Text) -> views.TextColumn: ...
        @overload
        def __getitem__(self, name: names.Bytes) -> views.BytesColumn: ...
        @overload
        def __getitem__(self, name: names.Ascii) -> views.AsciiColumn: ...
        @overload
        def __getitem__(self, name: names.Utf8) -> views.Utf8Column: ...
        @overload
        def __getitem__(self, name: str) -> Any: ...

    def __contains__(self, name: object) -> bool:
        """Return True if ``name`` is the name of a column that this Batch has."""
        return name in self.columns

    def __getitem__(self, name):
        """A column, never copied.

        Numbers, enumerations and times are arrays of shape (n,), GUIDs (n, 16) uint8 in wire order, addresses and names
        of queues structured arrays; lists are a ``ListColumn``, text a ``TextColumn``, bytes a ``BytesColumn``. Values
        in null rows are zero. ``fault`` gives ``faults``, an entry for each row with a fault.

        Raises
        ------
        KeyError
            No such column, or it was not requested.
        TypeError
            ``name`` is not text.
        """
        if not isinstance(name, str):
            raise TypeError(f"a Batch is indexed by the name of a column, not by {type(name).__name__}")
        (name,) = current_names(self.table.name, (name,))
        for column in self.table.all_columns:
            if column.name == name:
                break
        else:
            raise KeyError(f"{name!r}: no such column of {self.table.name}; it has {', '.join(self.table.names)}")
        require_requested(self, name)
        _hold = Hold(self)
        if name == "fault":
            return self.faults
        self.derive(name)
        return view_of(self, column.type, name, self.length, self.rows_of_payloads())

    def is_valid(self, str name) -> NDArray[np.bool_]:
        """Boolean array: the rows in which the column has a value, as Arrow has it; elsewhere it is null.

        ``name`` may be one of the table's ``presence_bits`` as well.

        Raises
        ------
        ValueError
            No such column.
        KeyError
            The column is derived from others, and was not requested.
        """
        _hold = Hold(self)
        if name in self.table.presence_bits:
            bit = self.table.presence_bits[name]
            self.derive_presence(bit)
            return presence_of(self) & bit != 0
        (column,) = self.table.select([name])
        name = column.name
        if name == "fault":
            present = np.zeros(self.length, bool)
            present[self.faults["row"]] = True
            return present
        if "presence" not in self.buffers:
            return np.ones(self.length, bool)
        self.derive_presence(column.presence)
        present = presence_of(self) & (column.presence or DECODED) != 0
        faults = self.faults
        faults = faults[faults["code"] == <uint32_t>INCOMPLETE]
        if faults.size:
            needed = bytes_needed(self.table)[self.table.names.index(name)][faults["field"]]
            rows = faults["row"]
            present[rows] = (present[rows] | (not column.presence)) & (faults["available"] >= needed)
        return present

    def names(self, str name) -> list[str | None]:
        """The names of an enumeration, a row each; None where the column is null.

        Raises
        ------
        KeyError
            No such column, or it was not requested.
        TypeError
            The column has no names.
        """
        _hold = Hold(self)
        numbers = self[name]
        known = self.names_by_number(name)
        if known is None:
            raise TypeError(f"{name!r} is not an enumeration")
        valid = self.is_valid(name).tolist()
        return [known[number] if has else None for number, has in zip(numbers.tolist(), valid, strict=True)]

    def uuids(self, str name) -> list[UUID | None] | list[list[UUID] | None]:
        """The GUIDs of a column, a row each, or a list of them; None where the column is null.

        ``batch[name]`` has their bytes in the order of packets, where the first three numbers of a GUID are
        little-endian; Arrow has them in the order of the text.

        Raises
        ------
        KeyError
            No such column, or it was not requested.
        TypeError
            The column has no GUIDs.
        """
        _hold = Hold(self)
        values = self[name]
        type_ = self.column(name).type
        if isinstance(type_, ListOf) and type_.item is GUID:
            found = guids_of(values.values)
            found = [found[start:end] for start, end in pairwise(values.offsets.tolist())]
        elif type_ is GUID:
            found = guids_of(values)
        else:
            raise TypeError(f"{name!r} has no GUIDs")
        return [value if has else None for value, has in zip(found, self.is_valid(name).tolist(), strict=True)]

    def equals(self, str name, value: object) -> NDArray[np.bool_]:
        """Boolean array: the rows whose value is ``value``, a name of an enumeration or a ``uuid.UUID``; no null row.

        Raises
        ------
        KeyError
            No such column, or it was not requested.
        ValueError
            The enumeration has no such name.
        TypeError
            ``value`` is of another type than the column, or the column has neither names nor GUIDs.

        Examples
        --------
        >>> from msmqwire import mqsd
        >>> batch = mqsd.decode_batch([bytes.fromhex("00010000") + bytes(48), b"oops"])
        >>> batch.equals("type", "request")
        array([ True, False])
        """
        _hold = Hold(self)
        values = self[name]
        type_ = self.column(name).type
        if type_ is GUID:
            if not isinstance(value, UUID):
                raise TypeError(f"{name!r} has GUIDs: compare it with a uuid.UUID, not with {value!r}")
            low, high = np.frombuffer(value.bytes_le, np.uint64)
            halves = values.view(np.uint64)
            return (halves[:, 0] == low) & (halves[:, 1] == high) & self.is_valid(name)
        known = self.names_by_number(name)
        if known is None:
            raise TypeError(f"{name!r} has neither names nor GUIDs: compare batch[{name!r}]")
        if not isinstance(value, str):
            raise TypeError(f"{name!r} has names: compare it with text, not with {value!r}")
        numbers = [number for number, each in known.items() if each == value]
        if type_.names and not numbers:
            raise ValueError(f"{value!r} is not one of {', '.join(map(repr, type_.names))}")
        return np.isin(values, numbers)

    cdef object column(self, str name):
        (column,) = self.table.select([name])
        return column

    cdef dict names_by_number(self, str name):
        """The names of an enumeration by their numbers; None for another column."""
        column = self.column(name)
        if not isinstance(column.type, Enumeration):
            return None
        return dict(enumerate(self.own_names[column.name])) if column.name in self.own_names else column.type.by_number

    @property
    def faults(self) -> NDArray[np.void]:
        """One entry for each faulty row, in order: row, code, field, item, offset, needed, available."""
        self.readable()
        if not self.fault_count:
            return np.empty(0, FAULT_DTYPE)
        return np.frombuffer(read_only(self.buffers["faults"]), FAULT_DTYPE, self.fault_count)

    def fault(self, Py_ssize_t row) -> views.FaultEntry | None:
        """Why a row could not be decoded, or None."""
        _hold = Hold(self)
        check_row(self, row)
        cdef const Fault* fault = <const Fault*>self.data("faults")
        cdef size_t place = np.searchsorted(self.faults["row"], row)
        if place == self.fault_count or fault[place].row != <uint32_t>row:
            return None
        fault += place
        return FaultEntry(
            FAULT_NAMES[fault.code], field_name(self.table.fields, fault.field, fault.item), fault.offset,
            number_or_none(fault.value), number_or_none(needed_of(fault)),
        )

    def packet(self, Py_ssize_t row) -> WirePacket:
        """Decode the packet of one row; of a change, its complete message.

        Raises
        ------
        DecodeError
            The row has a fault.
        ValueError
            The payload is null, or ``forget_payloads`` has released it.
        TypeError
            The rows of the table are not packets.

        Examples
        --------
        >>> from msmqwire import mqsd
        >>> mqsd.decode_batch([bytes.fromhex("00010000") + bytes(48)]).packet(0).type
        'request'
        """
        cdef size_t payload = <size_t>row
        _hold = Hold(self)
        check_row(self, row)
        if "decode" not in self.table.codec:
            raise TypeError(f"a row of {self.table.name} is not a packet")
        fault = self.fault(row)
        if fault is not None:
            raise DecodeError(*fault[:3], value=fault.value, needed=fault.needed)
        if self.forgotten:
            raise ValueError(RELEASED)
        if self.groups is not None:
            payload = <size_t>np.searchsorted(self.rows_of_payloads()[0], row, side="right") - 1
        data = self.payloads[payload]
        if data is None:
            raise ValueError(f"the payload of row {row} is null")
        transport = "unknown" if self.transports is None else TRANSPORT_NAMES[transport_at(self.transports, payload)]
        return self.table.codec["decode"](data, **({} if transport == "unknown" else {"transport": transport}))

    @property
    def violations(self) -> NDArray[np.uint32]:
        """Bits of the table's violations, shape (n,)."""
        self.readable()
        if "violations" not in self.buffers:
            raise KeyError("'violations' is not among the requested columns")
        return np.frombuffer(read_only(self.buffers["violations"]), np.uint32, self.length)

    def violation_names(self, Py_ssize_t row) -> tuple[str, ...]:
        """The rules that a row breaks, by name."""
        cdef uint32_t bits
        _hold = Hold(self)
        check_row(self, row)
        bits = self.violations[row]
        return tuple(name for i, name in enumerate(self.table.violation_names) if bits >> <uint32_t>i & 1)

    def to_arrow(self, *, str guid: GuidForm = "binary", bint dictionaries=True) -> pa.RecordBatch:
        """The table as Arrow, in the schema of ``table.arrow_schema(columns, ...)`` with these options; needs pyarrow.

        Numbers and list offsets are not copied; while a consumer holds them, ``out=`` refuses this Batch.

        Parameters
        ----------
        guid : {"binary", "uuid", "text"}
            16 bytes in RFC 9562 order, the ``arrow.uuid`` extension type, or canonical lower-case text.
        dictionaries : bool
            Enumerations, addresses, files and queues are dictionaries of their values; if false, strings.

        Raises
        ------
        ValueError
            ``forget_payloads`` has released the payloads, which text, bytes and queues are parts of; or ``guid`` is
            none of the three.
        """
        cdef ArrowForm form = arrow_form(self, guid, dictionaries)
        cdef Hold hold = Hold(self)
        return record_batch(self.arrow_tree(form), hold, self.table.arrow_schemas, (self.columns, guid, dictionaries))

    def to_pylist(self) -> list[dict[str, Any]]:
        """The rows as dicts by the names of the columns, GUIDs and times as text; needs pyarrow.

        Raises
        ------
        ValueError
            ``forget_payloads`` has released the payloads.

        Examples
        --------
        >>> from msmqwire import mqsd
        >>> mqsd.decode_batch([bytes.fromhex("00010000") + bytes(48)], columns=["type", "site_id"]).to_pylist()
        [{'type': 'request', 'site_id': '00000000-0000-0000-0000-000000000000'}]
        """
        require("pyarrow", "to_pylist")
        return python_rows(self.to_arrow(guid="text"))

    def to_pandas(self, **options: Any) -> pd.DataFrame:
        """The rows as a DataFrame of pandas, GUIDs as text; needs pyarrow.

        A column of uint64 with nulls is of pandas' UInt64, unless an option says otherwise: other numbers with nulls
        are floats, which have 53 bits.

        Parameters
        ----------
        **options
            Those of ``pyarrow.Table.to_pandas``.
        """
        return pandas_frame(self.text_table("to_pandas"), options)

    def to_polars(self) -> pl.DataFrame:
        """The rows as a DataFrame of polars, GUIDs as text; needs pyarrow."""
        return polars_frame(self.text_table("to_polars"))

    cdef object text_table(self, str purpose):
        """The rows as a pyarrow.Table with GUIDs as text."""
        pa = require("pyarrow", purpose)
        return pa.Table.from_batches([self.to_arrow(guid="text")])

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows, as ``to_pylist`` has them."""
        return iter(self.to_pylist())

    def __arrow_c_schema__(self) -> object:
        _hold = Hold(self)
        return schema_capsule(self.arrow_tree(arrow_form(self, "binary", True)))

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """The table for any Arrow consumer, without pyarrow."""
        return arrow_form(self, "binary", True).__arrow_c_array__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The table as a stream of one batch, for libraries that make tables of streams only, without pyarrow."""
        cdef Hold hold = Hold(self)
        return stream_capsule(self.arrow_tree(arrow_form(self, "binary", True)), hold)

    def forget_payloads(self) -> None:
        """Release the payloads, which Arrow exports that were made do not need.

        Afterwards columns of text, bytes and queues cannot be read or exported, and the batch cannot be encoded: a
        ValueError.

        Raises
        ------
        BufferError
            Another thread is decoding, exporting or encoding the batch.
        """
        self.readable()
        if self.readers:
            raise BufferError("the payloads of the batch are being read by another thread")
        self.payloads = NO_PAYLOADS
        self.groups = None
        self.forgotten = True

    # --- for kernels ---

    cdef int hold_payloads(self, Payloads payloads) except -1:
        """Take the payloads that are about to be decoded, a row for each until a kernel says otherwise."""
        if self.contents is not None:
            self.contents.overwritten = True
            self.contents = None
        self.payloads = payloads
        self.forgotten = False
        self.groups = None
        self.length = payloads.table.count
        self.fault_count = 0
        self.counts = {}
        return 0

    cdef Batch head(self, size_t rows):
        """The first rows without derived columns, in the same memory: to be used before this batch is overwritten."""
        cdef Batch batch = Batch.__new__(Batch)
        cdef const Fault* faults = <const Fault*>self.data("faults")
        batch.table, batch.payloads, batch.groups = self.table, self.payloads, self.groups
        batch.transports = self.transports
        batch.columns = tuple([column.name for column in self.table.ordered(self.columns) if not column.derived])
        batch.selected = frozenset(batch.columns)
        batch.length = min(rows, self.length)
        for column in batch.columns:
            self.derive(column)
        batch.buffers, batch.own_names = self.buffers, self.own_names
        batch.counts = {}
        for path in sorted([path for path in self.counts if path.endswith("[]")], key=len):  # without derived columns
            around = path[:-2].rpartition("[]")
            ends = np.frombuffer(self.buffers[path[:-2]], np.int32)
            batch.counts[path] = int(ends[batch.counts[around[0] + "[]"] if around[1] else batch.length])
        while batch.fault_count < self.fault_count and faults[batch.fault_count].row < batch.length:
            batch.fault_count += 1
        return batch

    cdef int readable(self) except -1:
        if self.writing:
            raise BufferError("the batch is being written by another thread")
        return 0

    cdef int derive(self, str column) except -1:
        """Make the values of a column that the kernel did not write; batches of protocols override this."""
        return 0

    cdef int derive_presence(self, uint32_t bit) except -1:
        """Make the columns without which a bit of presence is not known; KeyError if they were not requested."""
        columns = [column for column in self.table.all_columns if column.presence == bit]
        if not all([column.derived for column in columns]):  # the kernel has written it
            return 0
        for column in columns:
            require_requested(self, column.name)
            self.derive(column.name)
        return 0

    cdef Buffer payloads_of_rows(self):
        """The payload of each row; None where row i is of payload i."""
        if self.groups is None:
            return None
        return rows_of_items(<const int32_t*>self.groups.data, self.payloads.table.count, NULL)

    cdef tuple rows_of_payloads(self):
        """The offsets of the rows of each payload, as the outermost of the ``parents`` of a view."""
        if self.groups is None:
            return ()
        return (np.frombuffer(read_only(self.groups), np.int32, <Py_ssize_t>self.payloads.table.count + 1),)

    cdef bint wants(self, str column):
        return column in self.selected

    cdef uint8_t* reserve(self, str path, size_t size) except NULL:
        """Space for ``size`` bytes at ``path``: the existing Buffer if it is large enough, else a new one."""
        cdef Buffer buffer = self.buffers.get(path)
        if buffer is None or buffer.size < size:
            buffer = allocate(size)
            self.buffers[path] = buffer
        return buffer.data

    cdef uint8_t* reserve_column(self, str column, size_t size) except? NULL:
        """Reserve the buffer of a column or of a part of one. Return NULL if the column is not requested."""
        if column.partition("[")[0] not in self.selected:
            return NULL
        return self.reserve(column, size)

    cdef uint8_t* data(self, str path) noexcept:
        cdef Buffer buffer = self.buffers.get(path)
        return NULL if buffer is None else buffer.data

    cdef Fault* reserve_faults(self) except NULL:
        self.fault_count = 0
        return <Fault*>self.reserve("faults", self.length * sizeof(Fault))

    # --- Arrow ---

    cdef ArrowNode arrow_tree(self, ArrowForm form):
        cdef ArrowNode root
        cdef Reading _reading
        columns = self.table.ordered(self.columns)
        if any([column.type.in_payload for column in columns]):
            _reading = Reading(self)
        cdef Buffer rows = self.payloads_of_rows()
        root = arrow_node("", "+s", <Py_ssize_t>self.length, None, 0, [])
        for column in columns:
            self.derive(column.name)  # which may write presence
        form.validity = validity_of(self.buffers.get("presence"), self.table.presence_width, self.length)
        for column in columns:
            index = self.table.places[column.name]
            if column.name == "fault":
                root.children.append(
                    fault_node(
                        <const Fault*>self.data("faults"), self.fault_count, self.length, self.table.fields,
                        form.dictionaries,
                    )
                )
            else:
                validity, nulls = self.validity_of_column(form, index, column.presence)
                root.children.append(
                    node_of(self, column.type, column.name, column.name, self.length, validity, nulls, rows, form)
                )
        return root

    cdef tuple validity_of_column(self, ArrowForm form, size_t index, uint32_t presence):
        """The bitmap of a column, None where it has no nulls, and the number of these."""
        cdef const Fault* fault = <const Fault*>self.data("faults")
        cdef const Fault* end = fault + self.fault_count
        cdef const uint32_t[:, ::1] needed
        cdef size_t size = (self.length + 7) // 8
        cdef Buffer bitmap, common
        cdef Py_ssize_t nulls
        cdef bint carried
        cdef uint8_t* byte
        cdef uint8_t bit
        common, nulls = form.validity.of(presence or DECODED)
        while fault != end and fault.code != <uint32_t>INCOMPLETE:
            fault += 1
        if fault == end:
            return common, nulls
        needed = bytes_needed(self.table)
        bitmap = allocate(size)
        if common is None:
            memset(bitmap.data, 0xFF, size)
        else:
            memcpy(bitmap.data, common.data, size)
        while fault != end:
            if fault.code == <uint32_t>INCOMPLETE:
                byte, bit = bitmap.data + (fault.row >> 3), <uint8_t>(1 << (fault.row & 7))
                carried = byte[0] & bit != 0
                nulls += carried
                byte[0] &= ~bit
                if (carried or not presence) and fault.available >= needed[index, fault.field]:
                    byte[0] |= bit
                    nulls -= 1
            fault += 1
        return bitmap, nulls


cdef class ArrowForm:
    """A Batch for any Arrow consumer, with GUIDs in one of their forms, and with dictionaries or without."""

    def __arrow_c_array__(self, requested_schema=None):
        cdef Hold hold = Hold(self.batch)
        cdef ArrowNode root = self.batch.arrow_tree(self)
        return schema_capsule(root), array_capsule(root, hold)


cdef ArrowForm arrow_form(Batch batch, str guid, bint dictionaries):
    cdef ArrowForm form = ArrowForm.__new__(ArrowForm)
    if guid not in ("uuid", "text", "binary"):
        raise ValueError(f"guid={guid!r} is not one of 'uuid', 'text', 'binary'")
    form.batch = batch
    form.guid = guid
    form.dictionaries = dictionaries
    return form


def concat_columns(Batch first, Batch last, *, str guid: GuidForm, bint dictionaries) -> pa.RecordBatch:
    """Return one pyarrow.RecordBatch with the columns of two batches of the same rows."""
    cdef tuple holds = (Hold(first), Hold(last))
    cdef ArrowNode root
    if first.length != last.length:
        raise ValueError(f"a batch has {first.length} rows, the other {last.length}")
    root = first.arrow_tree(arrow_form(first, guid, dictionaries))
    root.children += last.arrow_tree(arrow_form(last, guid, dictionaries)).children
    key = first.table.name, first.columns, last.columns, guid, dictionaries
    return record_batch(root, holds, last.table.arrow_schemas, key)


cdef Batch prepare(object table, Payloads payloads, object columns, Batch out, type kind=Batch):
    """A Batch to be written, of the class ``kind``: ``out`` when it fits, else a new one.

    Raises
    ------
    ValueError
        A column does not exist, or ``out`` is of another table or other columns.
    BufferError
        An Arrow consumer or an encoder still holds ``out``, or another thread is writing it.
    """
    cdef Batch batch = out
    cdef tuple names
    if batch is not None and batch.table is table and columns is not None and tuple(columns) == batch.columns:
        names = batch.columns
    else:
        names = tuple([column.name for column in table.ordered(columns)])
    if batch is None:
        batch = kind.__new__(kind)
        batch.table = table
        batch.columns = names
        batch.selected = frozenset(names)
        batch.buffers = {}
        batch.own_names = {}
    elif batch.table is not table:
        raise ValueError(f"out= is a batch of {batch.table.name}, not of {table.name}")
    elif batch.columns != names and batch.selected != frozenset(names):
        raise ValueError(f"out= has the columns {', '.join(batch.columns)}; requested are {', '.join(names)}")
    elif batch.holders:
        raise BufferError("out= is held by an Arrow consumer or an encoder: release it or decode into a new Batch")
    else:
        batch.readable()
        batch.columns = names
    batch.hold_payloads(payloads)
    return batch


def take(column: views.SpanColumn, rows: NDArray[np.integer]) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Return the values of a ``SpanColumn`` in some rows: their ends (int32, shape (n + 1,)) and their bytes (uint8).

    Text is in UTF-8, with U+FFFD for a lone surrogate. A null value is empty.
    """
    cdef Payloads payloads = column.payloads
    cdef size_t count = <size_t>len(rows)
    if count and not payloads.table.count:
        raise ValueError(RELEASED)
    spans = np.empty(count, SPAN_DTYPE)
    numbers, spans["offset"], spans["length"] = column.places(rows)
    cdef Buffer where = buffer_of_bytes(spans.tobytes())
    cdef Buffer owners = buffer_of_bytes(numbers.tobytes())
    cdef const TextSpan* span = <const TextSpan*>where.data
    cdef const uint32_t* owner = <const uint32_t*>owners.data
    if isinstance(column, TextColumn):
        ends, data = texts_of_spans(span, count, &payloads.table, owner)
    else:
        ends, data = bytes_of_spans(span, count, &payloads.table, owner)
    last = np.frombuffer(ends, np.int32, <Py_ssize_t>count + 1)
    return last, np.frombuffer(data, np.uint8, last[-1])


cdef int require_requested(Batch batch, str name) except -1:
    """Refuse a column that was not requested: it has no buffer."""
    if name not in batch.selected:
        raise KeyError(f"{name!r} is not among the requested columns: {', '.join(batch.columns)}")
    return 0


cdef list guids_of(object values):
    """GUIDs in the order of packets as objects."""
    return [UUID(bytes_le=value.tobytes()) for value in values]


cdef int check_row(Batch batch, Py_ssize_t row) except -1:
    if not 0 <= row < len(batch):
        raise IndexError(f"row {row} of {batch.length}")
    return 0


def take_rows(Batch batch, const uint32_t[::1] rows: NDArray[np.uint32], tuple columns: tuple[str, ...]) -> Batch:
    """Some rows of some columns as a new Batch: of columns with one value a row that is not in the payloads."""
    cdef Batch taken = prepare(batch.table, NO_PAYLOADS, columns, None)
    cdef Hold _hold = Hold(batch)
    cdef Py_ssize_t i
    for name in taken.columns:
        require_requested(batch, name)
    for i in range(rows.shape[0]):
        if rows[i] >= batch.length:
            raise IndexError(f"row {rows[i]} of {batch.length}")
    taken.length = <size_t>rows.shape[0]
    taken.own_names = batch.own_names
    widths = {column.name: column.type.width for column in batch.table.select(columns)}
    if "presence" in batch.buffers:
        widths["presence"] = batch.table.presence_width
    for path, width in widths.items():
        gather(taken.reserve(path, taken.length * <size_t>width), batch.data(path), rows, width)
    return taken


cdef void gather(uint8_t* target, const uint8_t* values, const uint32_t[::1] rows, size_t width) noexcept nogil:
    """Copy the values of some rows; the common widths as one number."""
    cdef size_t count = <size_t>rows.shape[0]
    cdef size_t i
    if width == 1:
        for i in range(count):
            target[i] = values[rows[i]]
    elif width == 2:
        for i in range(count):
            memcpy(target + 2 * i, values + 2 * <size_t>rows[i], 2)
    elif width == 8:
        for i in range(count):
            memcpy(target + 8 * i, values + 8 * <size_t>rows[i], 8)
    else:
        for i in range(count):
            memcpy(target + width * i, values + width * rows[i], width)


# --- numpy views ---

cdef object presence_of(Batch batch):
    return np.frombuffer(batch.buffers["presence"], f"<u{batch.table.presence_width}", batch.length)


cdef object view_of(Batch batch, object type_, str path, size_t count, tuple parents):
    """The numpy view of a column, or of the part of one at ``path``; ``parents``: offsets of the lists around it."""
    if isinstance(type_, ListOf):
        offsets = np.frombuffer(read_only(batch.buffers[path]), np.int32, count + 1)
        items = view_of(batch, type_.item, path + "[]", batch.counts[path + "[]"], (offsets, *parents))
        return ListColumn(offsets, items, contents_of(batch))
    if isinstance(type_, StructOf):
        return {name: view_of(batch, member, f"{path}.{name}", count, parents) for name, member in type_.members}
    data = read_only(batch.buffers[path])
    if type_ is UTF8:
        ends = np.frombuffer(data, np.int32, <Py_ssize_t>count + 1)
        texts = read_only(batch.buffers[path + ".text"])
        return Utf8Column(ends, np.frombuffer(texts, np.uint8, ends[<Py_ssize_t>count]))
    values = np.frombuffer(data, type_.dtype, count)
    return values if type_.view is None else type_.view(values, batch.payloads, parents, contents=contents_of(batch))


cdef object contents_of(Batch batch):
    if batch.contents is None:
        batch.contents = Contents()
    return batch.contents


cdef object read_only(Buffer buffer):
    # Exports and encoders trust these to be what a kernel wrote, and Arrow arrays share them
    return memoryview(buffer).toreadonly()


# --- Arrow nodes ---


cdef ArrowNode node_of(
    Batch batch, object type_, str name, str path, size_t count, Buffer validity, Py_ssize_t nulls, Buffer rows,
    ArrowForm form,
):
    """The Arrow array of the part of a column at ``path``; ``rows``: the payload of each value, None: value i has i."""
    cdef ArrowNode node
    cdef Buffer buffer
    cdef Py_ssize_t length = <Py_ssize_t>count
    cdef const uint32_t* row = NULL
    if rows is not None:
        row = <const uint32_t*>rows.data
    if isinstance(type_, StructOf):
        node = arrow_node(name, "+s", length, validity, nulls, [])
        for (member, member_type), bit in zip(type_.members, type_.presence or [0] * len(type_.members), strict=True):
            present, absent = None, 0
            if bit:
                present, absent = presence_bitmap(batch.data(path + "?"), 1, bit, count)
            node.children.append(
                node_of(batch, member_type, member, f"{path}.{member}", count, present, absent, rows, form)
            )
        return node
    buffer = batch.buffers[path]
    if isinstance(type_, ListOf):
        node = arrow_node(name, "+l", length, validity, nulls, [buffer])
        length = batch.counts[path + "[]"]
        if type_.item is GUID and form.guid == "binary":
            guids = swapped_guids(batch.data(path + "[]"), <size_t>length)
            node.children.append(arrow_node("item", "z", length, None, 0, [ends_of_guids(<size_t>length), guids]))
            return node
        items = rows_of_items(<const int32_t*>buffer.data, count, row) if type_.in_payload else None
        # DuckDB refuses a batch of empty lists over a dictionary
        plain = arrow_form(batch, form.guid, False)
        node.children.append(node_of(batch, type_.item, "item", path + "[]", <size_t>length, None, 0, items, plain))
        return node
    if isinstance(type_, Enumeration):
        names = batch.own_names[path] if path in batch.own_names else type_.names
        return names_node(name, type_, buffer, count, validity, nulls, names, form.dictionaries)
    if type_ is TEXT:
        texts = texts_of_spans(<const TextSpan*>buffer.data, count, &batch.payloads.table, row)
        return arrow_node(name, "u", length, validity, nulls, list(texts))
    if type_ is UTF8:
        return arrow_node(name, "u", length, validity, nulls, [buffer, batch.buffers[path + ".text"]])
    if type_ is BYTES:
        blobs = bytes_of_spans(<const TextSpan*>buffer.data, count, &batch.payloads.table, row)
        return arrow_node(name, "z", length, validity, nulls, list(blobs))
    if type_ is ASCII:
        texts = ascii_of_spans(<const TextSpan*>buffer.data, count, &batch.payloads.table, row)
        return arrow_node(name, "u", length, validity, nulls, list(texts))
    if type_ is ADDRESS:
        places, texts = distinct_addresses(buffer.data, count, NULL if validity is None else validity.data)
        return distinct_node(name, count, validity, nulls, places, texts, form.dictionaries)
    if type_ is FORMAT_NAME:
        places, texts = distinct_format_names(
            <const FormatName*>buffer.data, count, &batch.payloads.table, row,
            NULL if validity is None else validity.data,
        )
        return distinct_node(name, count, validity, nulls, places, texts, form.dictionaries)
    if type_ is BOOL:
        return arrow_node(name, "b", length, validity, nulls, [bits_of_bools(buffer.data, count)])
    if type_ is GUID:
        return guid_node(buffer, name, count, validity, nulls, form.guid)
    if isinstance(type_, Flags):
        return violations_node(<const uint32_t*>buffer.data, count, validity, nulls, type_.names)
    return arrow_node(name, type_.format, length, validity, nulls, [buffer])
