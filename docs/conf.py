"""How Sphinx builds the manual (``make manual``): these pages, and a page of the reference for each public module."""

from __future__ import annotations

import contextlib
import enum
import importlib
import pkgutil
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.domains.python import ObjectEntry, PyClasslike, PythonDomain
from sphinx.errors import ExtensionError, PycodeError
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

import msmqwire

HERE = Path(__file__).parent

project = "msmqwire"
author = "The msmqwire maintainers"
copyright = "The msmqwire maintainers, Apache-2.0"
version = release = msmqwire.__version__
language = "en"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline"]
# The state diagrams of the manual are written for Mermaid, which is a script; dot draws them instead
myst_fence_as_directive = ["mermaid"]
# Examples with ellipses or SQL that a lexer refuses
suppress_warnings = ["misc.highlighting_failure"]

autodoc_default_options = {"members": True, "imported-members": True}
autodoc_member_order = "groupwise"
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 100
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
add_module_names = False

html_theme = "furo"
html_title = f"msmqwire {release}"
html_copy_source = False
html_show_sphinx = False

#: The pages in the order in which they are read; one that is missing here is a warning, and so an error.
NAVIGATION = {
    "Start": ("install", "tutorial"),
    "Python": ("packets", "columns", "captures"),
    "Answers": ("insight", "spark", "lake"),
    "Protocols": ("sessions", "discovery", "directory"),
    "Look up": ("command-line", "tables", "security", "glossary"),
    "Work on it": ("architecture", "conformance", "performance", "dependencies"),
}
#: The public modules by the title of their group.
REFERENCE = {
    "Packets": (
        *("mqsd", "mqqb", "mqcn", "propvariant", "propvariant.readable", "properties", "formatname", "errors"),
    ),
    "Tables and captures": ("capture", "columns"),
    "Insight": (
        "insight",
        "insight.explain",
        "insight.findings",
        "insight.report",
        "insight.interop",
        "insight.anonymize",
        "insight.bodies",
        "insight.pseudonyms",
        "insight.sql",
    ),
    "Protocols": (
        *("discovery", "session", "net", "directory", "routing"),
        *(f"notification.{name}" for name in ("envelope", "processor", "schedule", "sender", "replay", "comparison")),
    ),
    "Spark": (
        "spark",
        *(f"spark.{name}" for name in ("session", "functions", "pipeline", "lake", "insight", "streams")),
    ),
}


def public_modules() -> dict[str, ModuleType]:
    """The modules of the reference by their names."""
    names = [f"msmqwire.{name}" for group in REFERENCE.values() for name in group]
    return {name: importlib.import_module(name) for name in names}


def write_reference(app: Sphinx) -> None:
    """Write the sources of the reference, which git ignores: one page for each public module, and their list."""
    folder = HERE / "reference"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    index = ["Reference", "=========", ""]
    for title, group in REFERENCE.items():
        index += [title, "-" * len(title), "", ".. toctree::", ""]
        index += [f"   msmqwire.{name}" for name in group] + [""]
    (folder / "index.rst").write_text("\n".join(index), "utf-8")
    for name, module in public_modules().items():
        (folder / f"{name}.rst").write_text("\n".join(reference_page(name, module)), "utf-8")


def add_navigation(app: Sphinx, page: str, source: list[str]) -> None:
    """Put the table of contents after the first page, which Markdown elsewhere would show as code."""
    if page == "index":
        for title, names in {**NAVIGATION, "Reference": ("reference/index",)}.items():
            source[0] += "\n".join(["\n```{toctree}", ":hidden:", f":caption: {title}", "", *names, "```", ""])


def unlink_files(app: Sphinx, page: str, source: list[str]) -> None:
    """Leave the text of links to files beside this folder, which are no pages."""
    source[0] = re.sub(r"\[([^\]]+)\]\(\.\./[A-Z]+\.md[^)]*\)", r"\1", source[0])


def keep_anchors(app: Sphinx, page: str, source: list[str]) -> None:
    """Make targets of the anchors of table rows, and link to them by their names, as headings are linked to."""
    source[0] = re.sub(r'<a id="(\w+)"></a>', r"[]{#\1}", source[0])
    source[0] = re.sub(r"\]\(\w+\.md(#s\d+)\)", r"](\1)", source[0])


def link_decisions(app: Sphinx, what: str, name: str, member: object, options: Any, lines: list[str]) -> None:
    """Link the decisions on sessions, such as S16, to their rows of the page on conformance."""
    if not name.startswith(("msmqwire.session", "msmqwire.net")):
        return
    page = "`{0} <../conformance.html#{1}>`__"
    lines[:] = [re.sub(r"\bS\d{1,2}\b", lambda each: page.format(each[0], each[0].lower()), line) for line in lines]


def constants(module: ModuleType) -> dict[str, object]:
    """The public names of a module that are neither modules, classes nor functions: autodoc does not find them."""

    def has_description(name: str, value: object) -> bool:
        return isinstance(value, ModuleType) or getattr(value, "__name__", None) == name

    values = {name: getattr(module, name) for name in module.__all__}
    return {name: value for name, value in values.items() if not has_description(name, value)}


def reference_page(name: str, module: ModuleType) -> Iterator[str]:
    """Source of the page of one module."""
    described = constants(module)
    yield from (name, "=" * len(name), "", f".. automodule:: {name}")
    yield f"   :exclude-members: {', '.join(described)}"
    yield ""
    for constant, value in described.items():
        yield f".. py:data:: {constant}"
        if len(shown := repr(value)) <= 100:
            yield f"   :value: {shown}"
        yield ""
        yield from (f"   {line}" for line in comment_of(constant, value))
        yield ""


def comment_of(name: str, value: object) -> list[str]:
    """The text with a constant in the module of the package that defines it."""
    for module in [each for each in list(sys.modules) if each.startswith("msmqwire.")]:
        if vars(sys.modules[module]).get(name) is value:
            with contextlib.suppress(PycodeError):
                if found := ModuleAnalyzer.for_module(module).find_attr_docs().get(("", name)):
                    return found
    return []


def show_member(app: Sphinx, what: str, name: str, member: object, skip: bool, options: Any) -> bool | None:
    """Show the members of enumerations although they have no docstrings, and not those of tuples that say nothing."""
    if isinstance(member, enum.Enum) and not name.startswith("_"):
        return False
    return True if (getattr(member, "__doc__", None) or "").startswith("Alias for field number") else None


def keep_colon(app: Sphinx, what: str, name: str, member: object, options: Any, lines: list[str]) -> None:
    """Put an empty comment before the text of an attribute: napoleon takes the words before a colon for its type."""
    if what in ("attribute", "property"):
        lines[:0] = ["..", ""]


def join_names(app: Sphinx, what: str, name: str, member: object, options: Any, lines: list[str]) -> None:
    """Join the names of attributes that share a description: after a blank, Sphinx takes the first for a type."""
    pattern = r"(?<=^:ivar )[\w, ]+(?=:)|(?<=^:vartype )[\w, ]+(?=:)"
    lines[:] = [re.sub(pattern, lambda names: names[0].replace(", ", ",\u200b"), line) for line in lines]


def check_names(app: Sphinx, error: Exception | None) -> None:
    """Fail where a public package or name is missing in the reference; the command line has a page."""
    if error is not None or app.builder.name != "html":
        return
    packages = {each.name for each in pkgutil.walk_packages(msmqwire.__path__, "msmqwire.") if each.ispkg}
    wanted = {name for name in packages if hasattr(sys.modules.get(name), "__all__") and "cli" not in name}
    wanted |= {f"{name}.{each}" for name, module in public_modules().items() for each in module.__all__}
    if missing := sorted(wanted - set(app.env.domaindata["py"]["objects"]) - set(app.env.domaindata["py"]["modules"])):
        raise ExtensionError(f"not in the reference: {', '.join(missing)}")


class PublicNames(PythonDomain):
    """Names of Python, where a type such as ``bytes`` is never taken for an attribute of that name."""

    def find_obj(self, *args: Any, **options: Any) -> list[tuple[str, ObjectEntry]]:
        """The objects that a name may mean, without members of classes."""
        return [each for each in super().find_obj(*args, **options) if each[1].objtype not in ("attribute", "property")]


class Diagram(SphinxDirective):
    """A diagram of Mermaid, of states or of layers, drawn by dot in the colours of the text."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Draw it."""
        dot = ["digraph { bgcolor=transparent; node [shape=box, style=rounded]"]
        if self.content[0] != "flowchart TB":
            dot.append('rankdir=LR; "[*]" [shape=point]')
        for line in self.content[1:]:
            if arrow := re.fullmatch(r"\s*(\S+) (-->|==>)(?:\|(.+)\|)? (\S+?)(?:: (.+))?", line):
                label = arrow[3] or arrow[5] or ""
                # The way of a packet does not decide where a layer stands
                style = ", penwidth=3, constraint=false" if arrow[2] == "==>" else ""
                dot.append(f'"{arrow[1]}" -> "{arrow[4]}" [label="{label}"{style}]')
        drawn = subprocess.check_output(["dot", "-Tsvg"], input="\n".join([*dot, "}"]), text=True)
        svg = drawn[drawn.index("<svg") :].replace('"black"', '"currentColor"')
        svg = svg.replace("<text ", '<text fill="currentColor" ')
        svg = svg.replace("<svg ", '<svg role="img" aria-label="Diagram; the table below says the same" ', 1)
        return [nodes.raw("", f'<div style="overflow-x: auto">{svg}</div>', format="html")]


def setup(app: Sphinx) -> None:
    """Register the steps above."""
    app.add_directive("mermaid", Diagram)
    app.connect("builder-inited", write_reference)
    app.connect("source-read", add_navigation)
    app.connect("source-read", unlink_files)
    app.connect("source-read", keep_anchors)
    app.add_domain(PublicNames, override=True)
    app.connect("autodoc-skip-member", show_member)
    app.connect("autodoc-process-docstring", link_decisions)
    # Before napoleon and after it
    app.connect("autodoc-process-docstring", keep_colon, priority=400)
    app.connect("autodoc-process-docstring", join_names, priority=600)
    for kind in PyClasslike.doc_field_types:
        if kind.name == "variable":
            kind.label = "Attributes"
    app.connect("build-finished", check_names)
