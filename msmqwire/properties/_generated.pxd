"""Written by `make build` from table.py; do not edit."""

# The types of values: fixed sizes, values that begin with a count, texts
cdef enum ValueKind:
    KIND_NONE
    KIND_I2
    KIND_I4
    KIND_BOOL
    KIND_I1
    KIND_UI1
    KIND_UI2
    KIND_UI4
    KIND_I8
    KIND_UI8
    KIND_CLSID
    KIND_BLOB
    KIND_UI1_VECTOR
    KIND_UI4_VECTOR
    KIND_CLSID_VECTOR
    KIND_LPWSTR
    KIND_LPWSTR_VECTOR
    KIND_COUNT
