"""Stubs say what the compiled modules have: their functions and classes, with the parameters of each."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import msmqwire
from msmqwire import columns, mqcn, mqqb, mqsd

PACKAGE = Path(msmqwire.__file__).parent
#: The public classes that are made by calling them; an extension class has no signature by itself.
SIGNED = {*mqsd.__all__, *mqcn.__all__, *mqqb.__all__, *columns.__all__}
STUBS = sorted(path for path in PACKAGE.rglob("_*.pyi"))


def declared(arguments: ast.arguments) -> list[tuple[str, Any, bool]]:
    """The parameters of a function in a stub: name, kind, and whether there is a default."""
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    kind: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD
    found = [(each.arg, kind, default is not None) for each, default in zip(positional, defaults, strict=True)]
    kind = inspect.Parameter.KEYWORD_ONLY
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return found + [(each.arg, kind, default is not None) for each, default in pairs]


def compiled(value: Any) -> list[tuple[str, Any, bool]]:
    found = inspect.signature(value).parameters.values()
    return [(each.name, each.kind, each.default is not each.empty) for each in found]


def differences(body: list[ast.stmt], owner: Any, path: str) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.AnnAssign | ast.Assign) and not inspect.isclass(owner):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            known = [target.id for target in targets if isinstance(target, ast.Name)]
            # An alias of types has a name in the stub alone
            if isinstance(node, ast.AnnAssign) and not all(hasattr(owner, name) for name in known):
                yield f"{path}{known}: missing"
        if isinstance(node, ast.ClassDef):
            yield from differences(node.body, getattr(owner, node.name), f"{path}{node.name}.")
        if not isinstance(node, ast.FunctionDef) or (node.name.startswith("__") and node.name != "__init__"):
            continue
        decorators = [each.id for each in node.decorator_list if isinstance(each, ast.Name)]
        if node.name != "__init__" and ("overload" in decorators or "property" in decorators):
            continue
        wanted = declared(node.args)
        if node.name == "__init__":
            value, wanted = owner, wanted[1:]
            if owner.__name__ not in SIGNED:
                continue
        else:
            value = getattr(owner, node.name)
        if compiled(value) != wanted:
            yield f"{path}{node.name}: {compiled(value)}, in the stub {wanted}"


@pytest.mark.parametrize("path", STUBS, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_stub_has_the_parameters_of_its_module(path: Path) -> None:
    name = ".".join(("msmqwire", *path.relative_to(PACKAGE).with_suffix("").parts))
    module = importlib.import_module(name)
    assert list(differences(ast.parse(path.read_text("utf-8")).body, module, "")) == []


@pytest.mark.parametrize("build", [mqsd.TopologyClientRequest, mqsd.TopologyServerReply, mqqb.UserMessage, mqqb.Ping])
def test_keywords_without_a_default_are_required(build: Any) -> None:
    parameters = inspect.signature(build).parameters.values()
    if any(parameter.default is parameter.empty for parameter in parameters):
        with pytest.raises(TypeError):
            build()
    else:
        build()
