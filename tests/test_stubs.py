"""Stubs are written from the sources; classes show the parameters that their stubs have."""

from __future__ import annotations

import ast
import importlib
import inspect
from enum import IntEnum
from pathlib import Path
from typing import Any

import pytest

from msmqwire import columns, mqcn, mqqb, mqsd
from stubs import PACKAGE, stub, stubs

#: The public classes that are made by calling them; an extension class has no signature by itself.
CLASSES = sorted(
    {
        value
        for room in (columns, mqcn, mqqb, mqsd)
        for value in vars(room).values()
        if inspect.isclass(value) and "__signature__" in vars(value)
    },
    key=lambda value: value.__qualname__,
)


def test_the_committed_stubs_are_what_their_sources_say() -> None:
    written = stubs()
    assert len(written) > 20
    for path, text in written.items():
        assert path.read_text("utf-8") == text, f"run `make build`, which writes {path.name} anew"


def declared(class_: Any) -> list[tuple[str, Any, bool]]:
    """The parameters in the stub of a class: name, kind, and whether there is a default."""
    path = Path(columns.__file__).parents[2].joinpath(*class_.__module__.split(".")).with_suffix(".pyi")
    tree = ast.parse(path.read_text("utf-8"))
    (body,) = [node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == class_.__name__]
    found: list[tuple[str, Any, bool]] = []
    for node in body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            given, kinds = node.args, inspect.Parameter
            required = len(given.args) - len(given.defaults)
            found += [(each.arg, kinds.POSITIONAL_OR_KEYWORD, i >= required) for i, each in enumerate(given.args)][1:]
            pairs = zip(given.kwonlyargs, given.kw_defaults, strict=True)
            found += [(each.arg, kinds.KEYWORD_ONLY, default is not None) for each, default in pairs]
    return found


@pytest.mark.parametrize("class_", CLASSES, ids=lambda class_: class_.__name__)
def test_a_class_shows_the_parameters_of_its_stub(class_: Any) -> None:
    """``help()`` and ``inspect`` read ``__signature__``, which Cython does not make of ``__init__``."""
    parameters = inspect.signature(class_).parameters.values()
    assert [(each.name, each.kind, each.default is not each.empty) for each in parameters] == declared(class_)


def test_the_public_classes_have_a_signature() -> None:
    assert {mqsd.TopologyServerReply, mqcn.NotificationUpdate, mqqb.UserMessage, columns.Payloads} <= {*CLASSES}


@pytest.mark.parametrize(
    ("source", "written"),
    [
        ('def f() -> int:\n    """Count \\\\n."""', '    """Count \\\\n."""'),
        ('cdef class A:\n    @property\n    def x(self) -> int:\n        """Size."""', '    """Size."""'),
        ("def f(bint x=False) -> int: ...", "def f(x: bool = False) -> int: ..."),
        ("cdef class A:\n    def f(self, A a=None) -> None: ...", "    def f(self, a: A | None = None) -> None: ..."),
        ("cdef class A:\n    @property\n    def x(self) -> int: ...", "    x: Final[int]"),
        ("cdef class A:\n    if False:\n        @overload\n        def f(self) -> int: ...", "    @overload"),
        ("def f(x: int = FULL, *, y: int) -> int: ...", "def f(x: int = ..., *, y: int) -> int: ..."),
        ("def f(**x: int) -> int: ...", "def f(**x: int) -> int: ..."),
        ("if False:\n    from re import Match\n\ndef f() -> Match: ...", "from re import Match"),
    ],
)
def test_a_stub_has_the_types_of_its_source(source: str, written: str, tmp_path: Path) -> None:
    (tmp_path / "_a.pyx").write_text(source, "utf-8")
    assert written in stub(tmp_path / "_a.pyx").splitlines()


def test_what_has_no_annotation_is_not_in_a_stub(tmp_path: Path) -> None:
    (tmp_path / "_a.pyx").write_text("def f(x): ...\ncdef class A:\n    def f(self): ...\n", "utf-8")
    assert stub(tmp_path / "_a.pyx") == ""


@pytest.mark.parametrize(
    ("source", "refusal"),
    [("def f(x) -> int: ...", "x has no type"), ("def f(x: Match) -> int: ...", "no import of Match")],
)
def test_a_type_that_is_not_known_is_refused(source: str, refusal: str, tmp_path: Path) -> None:
    (tmp_path / "_a.pyx").write_text(source, "utf-8")
    with pytest.raises(ValueError, match=refusal):
        stub(tmp_path / "_a.pyx")


@pytest.mark.parametrize("path", sorted(path for path in PACKAGE.rglob("_*.pyi")), ids=lambda path: path.stem)
def test_docstrings_are_those_that_help_shows(path: Path) -> None:
    module = importlib.import_module(".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts))
    tree = ast.parse(path.read_text("utf-8"))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    owners: list[tuple[Any, Any]] = [(module, tree), *((getattr(module, node.name), node) for node in classes)]
    for owner, node in owners:
        if owner is not module and not issubclass(owner, IntEnum):
            assert (ast.get_docstring(node) or "") == inspect.cleandoc(owner.__doc__ or ""), node.name
        for each in node.body:
            if isinstance(each, ast.FunctionDef) and not each.decorator_list and not each.name.startswith("__"):
                assert ast.get_docstring(each) == inspect.getdoc(getattr(owner, each.name)), each.name
    assert path.parent.name != "mqsd" or path.stem != "_packet" or "\n    Examples\n" in path.read_text("utf-8")


@pytest.mark.parametrize("build", [mqsd.TopologyClientRequest, mqsd.TopologyServerReply, mqqb.UserMessage, mqqb.Ping])
def test_keywords_without_a_default_are_required(build: Any) -> None:
    parameters = inspect.signature(build).parameters.values()
    if any(parameter.default is parameter.empty for parameter in parameters):
        with pytest.raises(TypeError):
            build()
    else:
        build()
