"""Write the stub of each compiled module from its source: types stand once, in the ``.pyx``.

A stub has what is annotated there, with its docstrings, and what Python sees of the enumerations in the ``.pxd``. A
parameter without an annotation has the type that Cython converts to its C type. Under ``if False:``, which is not
compiled, a source has what is for type checkers alone: imports, aliases of types, and overloads.
"""

from __future__ import annotations

import builtins
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from Cython.CodeWriter import ExpressionWriter
from Cython.Compiler import ExprNodes, Nodes
from Cython.Compiler.Errors import init_thread
from Cython.Compiler.TreeFragment import parse_from_strings

PACKAGE = Path(__file__).parent / "msmqwire"
WIDTH = 120
LITERALS = ExprNodes.ConstNode | ExprNodes.PyConstNode | ExprNodes.TupleNode
#: The types of C numbers in Python; a Python type has its own name.
NUMBERS = {"bint": "bool", **dict.fromkeys(("size_t", "Py_ssize_t", "uint32_t", "uint64_t", "int64_t"), "int")}


def statements(node: Any) -> Iterator[Any]:
    """The statements of a body, those of its lists and under ``if False:`` included."""
    if isinstance(node, Nodes.StatListNode):
        for each in node.stats:
            yield from statements(each)
    elif isinstance(node, Nodes.IfStatNode):
        yield from statements(node.if_clauses[0].body)
    else:
        yield node


def parsed(path: Path) -> list[Any]:
    """The statements of a source; none if there is no such file."""
    if not path.exists():
        return []
    init_thread()
    level = "module_pxd" if path.suffix == ".pxd" else None
    return list(statements(parse_from_strings(path.stem, path.read_text("utf-8"), level=level).body))


def shown(node: Any) -> str:
    """The text of an expression or an annotation."""
    text = str(node.string.value) if isinstance(node, ExprNodes.AnnotationNode) else ExpressionWriter().write(node)
    return text.replace("'", '"')


def is_literal(node: Any) -> bool:
    """Whether an expression is an alias of ``Literal``."""
    return isinstance(node, ExprNodes.IndexNode) and getattr(node.base, "name", "") == "Literal"


def parameter(node: Any) -> str:
    """A parameter with its type, and its default if that is a literal."""
    name: str = node.declarator.name
    kind: str = getattr(node.base_type, "name", "")
    if not name:  # without a C type the parser has the name in its place
        name, kind = kind, ""
    if node.annotation:
        kind = shown(node.annotation)
    elif kind:
        kind = NUMBERS.get(kind, kind) + (" | None" if isinstance(node.default, ExprNodes.NoneNode) else "")
    elif name != "self":
        raise ValueError(f"{node.pos[0].name}.pyx:{node.pos[1]}: {name} has no type")
    default = "" if node.default is None else shown(node.default) if isinstance(node.default, LITERALS) else "..."
    return name + (f": {kind}" if kind else "") + (f" = {default}" if default else "")


def docstring(text: str | None, indent: str) -> Iterator[str]:
    """The lines of the docstring of a class or a function, or after an attribute; nothing if it has none."""
    text = inspect.cleandoc(text or "").replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    if text:
        first, *rest = text.split("\n")
        yield f'{indent}"""{first}' + ("" if rest else '"""')
        yield from (f"{indent}{line}".rstrip() for line in rest)
        if rest:
            yield f'{indent}"""'


def function(node: Any, indent: str) -> str:
    """A function, with a line for each parameter if one line is too short."""
    parameters = [parameter(each) for each in node.args]
    if node.num_kwonly_args:
        parameters.insert(len(parameters) - node.num_kwonly_args, "*")
    if node.starstar_arg:
        parameters.append(f"**{node.starstar_arg.name}: {shown(node.starstar_arg.annotation)}")
    begin = f"{indent}def {node.name.replace('__cinit__', '__init__')}("
    doc = list(docstring(node.doc, f"{indent}    "))
    end = f") -> {shown(node.return_type_annotation)}:" + ("" if doc else " ...")
    line = begin + ", ".join(parameters) + end
    lines = [line] if len(line) <= WIDTH else [begin, *(f"{indent}    {each}," for each in parameters), indent + end]
    return "\n".join([*lines, *doc, *[""] * bool(doc)])


def members(body: Iterable[Any], indent: str = "", attribute: str = "{}: {}") -> Iterator[str]:
    """The annotated functions, names and classes of a body."""
    for node in body:
        if isinstance(node, Nodes.CClassDefNode | Nodes.PyClassDefNode):
            yield from class_lines(node)
        elif isinstance(node, Nodes.ExprStatNode | Nodes.SingleAssignmentNode):
            target = node.expr if isinstance(node, Nodes.ExprStatNode) else node.lhs
            if getattr(target, "annotation", None):
                yield indent + attribute.format(target.name, shown(target.annotation))
            elif is_literal(getattr(node, "rhs", None)):
                yield f"{target.name} = {shown(node.rhs)}"
        elif isinstance(node, Nodes.DefNode) and node.return_type_annotation:
            decorators = [getattr(each.decorator, "name", "") for each in node.decorators or ()]
            if "property" in decorators:
                yield indent + attribute.format(node.name, shown(node.return_type_annotation))
                yield from docstring(node.doc, indent)
            else:
                yield from (f"{indent}@{name}" for name in decorators if name in ("overload", "staticmethod"))
                yield function(node, indent)


def class_lines(node: Any) -> Iterator[str]:
    """A class; nothing if it has no annotated member. Python cannot set attributes of a compiled class."""
    compiled = isinstance(node, Nodes.CClassDefNode)
    lines = list(members(statements(node.body), "    ", "{}: Final[{}]" if compiled else "{}: {}"))
    if lines:
        bases = ", ".join(each.name for each in node.bases.args)
        yield from ("", f"class {node.class_name if compiled else node.name}" + (f"({bases}):" if bases else ":"))
        doc = list(docstring(node.doc, "    "))
        yield from (*doc, *[""] * bool(doc), *lines, "")


def enumerations(body: Iterable[Any]) -> Iterator[str]:
    """The enumerations that Python sees."""
    for node in body:
        if isinstance(node, Nodes.CEnumDefNode) and node.create_wrapper:
            if node.name:
                yield from ("", f"class {node.name}(IntEnum):")
            last = -1
            for each in node.items:
                last = int(each.value.value) if each.value else last + 1
                yield f"    {each.name} = {last}" if node.name else f"{each.name}: int"
            yield ""


def imported(body: Iterable[Any]) -> Iterator[tuple[str, tuple[str, str]]]:
    """The names that a source imports, each with its module and what it is there."""
    for node in body:
        if isinstance(node, Nodes.FromCImportStatNode):
            yield from ((name, (str(node.module_name), name)) for _, name, _ in node.imported_names)
        elif isinstance(node, Nodes.FromImportStatNode):
            module = str(node.module.module_name.value)
            yield from ((str(each.name), (module, str(name))) for name, each in node.items)
        elif isinstance(node, Nodes.SingleAssignmentNode) and isinstance(node.rhs, ExprNodes.ImportNode):
            yield node.lhs.name, (str(node.rhs.module_name.value), "")


def import_lines(names: dict[str, tuple[str, str]]) -> Iterator[str]:
    """The lines that import the names: those of Python, of other packages, and of this one."""
    groups: dict[int, dict[str, list[str]]] = {0: {}, 1: {}, 2: {}}
    for name, (module, there) in sorted(names.items()):
        top = module.partition(".")[0]
        group = groups[2 if top == PACKAGE.name else 0 if top in sys.stdlib_module_names else 1]
        if there:
            group.setdefault(f"from {module} import ", []).append(there + (f" as {name}" if name != there else ""))
        else:
            group[f"import {module}" + (f" as {name}" if name != module else "")] = []
    for group in groups.values():
        if group:
            yield from ("", *sorted(begin + ", ".join(named) for begin, named in group.items()))


def stub(source: Path) -> str:
    """The text of the stub of a module; empty if nothing in it is annotated."""
    header, body = parsed(source.with_suffix(".pxd")), parsed(source)
    text = re.sub("\n{3,}", "\n\n", "\n".join([*enumerations(header), *members(body)]).strip())
    if not text:
        return ""
    text = re.sub(r"^(\w+(?::| =) .*\n)(?=def )", r"\1\n", text, flags=re.MULTILINE)
    bare = re.sub(r'"""(?:[^\\]|\\.)*?"""', "", text, flags=re.DOTALL)
    known = {name: ("typing", name) for name in ("Any", "Final", "Literal", "overload")}
    known |= {"IntEnum": ("enum", "IntEnum"), **dict(imported([*header, *body]))}
    used = {*re.findall(r"(?<![.\w])[A-Za-z_]\w*", re.sub(r'"[^"]*"|def \w+|\w+(?=: (?!\.{3}))', "", bare))}
    used -= {*dir(builtins), "class", "self", *re.findall(r"^(?:class )?(\w+)", bare, re.MULTILINE)}
    used -= {*re.findall(r"^    (\w+) = ", bare, re.MULTILINE)}
    if used - known.keys():
        raise ValueError(f"{source}: no import of {', '.join(sorted(used - known.keys()))}")
    first = f'"""Written by `make build` from the annotations in {source.name}; do not edit."""\n'
    return "\n".join([first.rstrip(), *import_lines({name: known[name] for name in sorted(used)}), "", text, ""])


def stubs() -> dict[Path, str]:
    """The text of the stub of each module that has annotations."""
    found = {source.with_suffix(".pyi"): stub(source) for source in sorted(PACKAGE.rglob("*.pyx"))}
    return {path: text for path, text in found.items() if text}
