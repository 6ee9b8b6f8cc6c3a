"""Every type in the signature of a public function or class is public as well."""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import pytest

from tests.layers import reference

ROOT = Path(__file__).parent.parent
#: Values that a caller never looks into: parameters of constructors that only the package calls.
INTERNALS = {
    "Answers", "MessageIDs", "OrderAckTimers", "OutboxStore", "Outcome", "OutgoingMessagePosition",
    "OutgoingMessageTable", "OutgoingRow", "OutgoingTransaction", "SequenceRow", "SourceAccount",
}  # fmt: skip
#: A stub alone.
NAMES = "msmqwire.columns.names"


@cache
def modules() -> dict[str, ModuleType]:
    return {name: importlib.import_module(name) for name in reference()}


@cache
def public() -> frozenset[str]:
    return frozenset(name for module in modules().values() for name in module.__all__)


@cache
def parsed(module: str) -> ast.Module:
    """The source of a module, or the stub of a compiled one."""
    path = ROOT.joinpath(*module.split("."))
    choices = (path.with_suffix(".pyi"), path.with_suffix(".py"), path / "__init__.py")
    return ast.parse(next(each for each in choices if each.exists()).read_text("utf-8"))


def annotated(node: ast.AST) -> Iterator[ast.expr]:
    """The annotations of a function, or of the public functions and attributes of a class."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        yield from (each.annotation for each in every if each is not None and each.annotation is not None)
        if node.returns is not None:
            yield node.returns
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id[0] != "_":
        yield node.annotation
    elif isinstance(node, ast.ClassDef | ast.If):
        for each in node.body:
            if not getattr(each, "name", "").startswith("_") or getattr(each, "name", "").startswith("__"):
                yield from annotated(each)


def own_names(module: str) -> dict[str, str]:
    """The names of this package that a module knows, each with the module that it has it from."""
    found: dict[str, str] = {}
    for node in ast.walk(parsed(module)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("msmqwire"):
            found |= {alias.asname or alias.name: node.module or "" for alias in node.names}
    for each in parsed(module).body:
        if isinstance(each, ast.ClassDef):
            found[each.name] = module
        elif isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
            found[each.targets[0].id] = module
    return found


def types(annotation: ast.expr) -> Iterator[str]:
    """The names in an annotation; text in it is one, too."""
    for node in ast.walk(annotation):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield node.attr
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            yield node.value


def unknown(name: str, value: Any) -> Iterator[str]:
    """The types of this package in the signatures of a class or function that are in no public module."""
    known = own_names(value.__module__)
    for node in parsed(value.__module__).body:
        if getattr(node, "name", None) == value.__name__:
            for each in {each for annotation in annotated(node) for each in types(annotation)}:
                if each in known and each not in {*public(), *INTERNALS} and not is_other(known[each], each):
                    yield f"{each} ({known[each]})"


def is_other(module: str, name: str) -> bool:
    """Whether a name is no type but a module, whose classes the same annotation has, or a variable of types."""
    with contextlib.suppress(ImportError):
        importlib.import_module(f"{module}.{name}")
        return True
    return isinstance(getattr(importlib.import_module(module), name, None), TypeVar) or f"{module}.{name}" == NAMES


@pytest.mark.parametrize("module", modules())
def test_types_in_signatures_are_public(module: str) -> None:
    found = {
        f"{name}: {lack}"
        for name in modules()[module].__all__
        for value in [getattr(modules()[module], name)]
        if (inspect.isclass(value) or inspect.isroutine(value))
        and str(getattr(value, "__module__", "")).startswith("msmqwire")
        for lack in unknown(name, value)
    }
    assert not found


def test_a_type_that_is_not_public_is_found() -> None:
    from msmqwire.capture import capture_range, chosen_frames

    assert [*unknown("ChosenFrames", chosen_frames.ChosenFrames)] == []
    assert [*unknown("copy_frames", chosen_frames.copy_frames)] == []
    assert "FileReader (msmqwire.capture.files._file_reader)" in unknown("CaptureRange", capture_range.CaptureRange)


#: Machines without I/O and the interfaces of directories, which programs drive or implement as the package does; what a
#: type of columns is in each format, one method for each.
DRIVEN = ("msmqwire.session", "msmqwire.directory", "msmqwire.columns.DataType")


def test_public_methods_have_a_use_outside_of_the_package() -> None:
    """The manual, an example or a test uses each: a method that only the package calls is private."""
    files = [path for pattern in ("docs/*.md", "examples/*", "tests/**/*.py") for path in ROOT.glob(pattern)]
    uses = set(
        re.findall(r"[.`](\w+)", "\n".join(path.read_text("utf-8", "replace") for path in files if path.is_file()))
    )
    found = {
        f"{module}.{name}.{own}"
        for module in modules()
        for name in modules()[module].__all__
        for value in [getattr(modules()[module], name)]
        for own, member in (vars(value).items() if inspect.isclass(value) else ())
        if not own.startswith("_") and own not in uses
        if inspect.isroutine(member) or isinstance(member, classmethod | staticmethod | property)
    }
    assert {each for each in found if not each.startswith(DRIVEN)} == set()


def test_internals_are_not_public() -> None:
    assert not INTERNALS & public()
