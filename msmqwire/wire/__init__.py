"""Primitives of every codec: a bounds-checked cursor, faults, GUIDs and UTF-16.

The cursor and the writers are ``cdef inline`` functions in ``.pxd`` files, compiled into each kernel that uses them.
"""
