"""Every public name explains itself at run time."""

from __future__ import annotations

import enum
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from functools import cached_property
from io import IOBase
from types import ModuleType
from typing import Any

import pytest

import msmqwire


def public_modules() -> list[str]:
    """The packages and their modules; a compiled module is private to its package."""
    found = [each.name for each in pkgutil.walk_packages(msmqwire.__path__, "msmqwire.")]
    return ["msmqwire", *(name for name in found if "._" not in name)]


def has_signature(value: Any) -> bool:
    try:
        inspect.signature(value)
    except (TypeError, ValueError):
        return False
    return True


def is_made_by_the_package(value: Any) -> bool:
    """Whether callers never make a value of this class, or make it as every other of its base."""
    if not inspect.isclass(value):
        return False
    return value.__init__ is object.__init__ or issubclass(value, enum.Enum | BaseException | dict | IOBase)


def unexplained(name: str, value: Any) -> Iterator[str]:
    """What lacks a docstring or a signature: a function, or a class and its public functions and properties.

    The attributes of a class that are data are explained by its docstring.
    """
    if not inspect.isclass(value) and not inspect.isroutine(value):
        return
    documented = (value.__doc__ or "").strip()
    if not documented or documented.startswith(f"{value.__name__}("):  # written by dataclass and NamedTuple
        yield f"{name}: docstring"
    if not is_made_by_the_package(value) and not has_signature(value):
        yield f"{name}: signature"
    for own, member in vars(value).items() if inspect.isclass(value) else ():
        if own.startswith("_") or inspect.isclass(member) or inspect.ismemberdescriptor(member):
            continue
        function = getattr(member, "__func__", member)
        is_property = isinstance(member, property | cached_property)
        is_function = inspect.isroutine(function) and not is_property and not inspect.isgetsetdescriptor(function)
        if (is_property or is_function) and not function.__doc__:
            yield f"{name}.{own}: docstring"
        if is_function and not has_signature(function):
            yield f"{name}.{own}: signature"


@pytest.mark.parametrize("name", public_modules())
def test_public_names_have_docstrings_and_signatures(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__
    public = {each: getattr(module, each) for each in getattr(module, "__all__", ())}
    values = {each: value for each, value in public.items() if not isinstance(value, ModuleType)}
    assert [lack for each, value in values.items() for lack in unexplained(each, value)] == []


@pytest.mark.parametrize(
    "name",
    ["capture", "columns", "directory", "discovery", "formatname", "mqcn", "mqqb", "mqsd", "net", "routing", "session"],
)
def test_dir_has_the_public_names(name: str) -> None:
    module = importlib.import_module(f"msmqwire.{name}")
    assert dir(module) == sorted(module.__all__)
