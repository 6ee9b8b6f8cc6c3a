"""Queries of sections and rules in Spark's SQL: parsed, checked node by node, and written.

DuckDB's text and Spark's differ in more than words, and some differences would change answers without an error. So each
kind of node that may be in a query is on a list, with the parts that it may have; all others are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import ErrorLevel, parse_one
from sqlglot import expressions as exp
from sqlglot.errors import SqlglotError

from msmqwire.insight.database import QueryError
from msmqwire.insight.sql_functions import MOST_FRAMES

#: The lowest places of a group, of which the first ten that differ are shown: rows of a packet have the same place.
MOST_PLACES = 20 * MOST_FRAMES

# With a third argument it returns a list
_LOWEST = "min_by"
_BINARY = ("this", "expression")
# The nodes that a query may have, and their parts that may have a value
_NODES: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Select: (
        "with_", "expressions", "distinct", "from_", "joins", "where", "group", "having", "qualify", "order", "limit",
    ),
    exp.With: ("expressions",),
    # MATERIALIZED changes no answer
    exp.CTE: ("this", "alias", "materialized"),
    exp.Subquery: ("this", "alias"),
    **dict.fromkeys((exp.Union, exp.Intersect, exp.Except), ("with_", *_BINARY, "distinct", "order", "limit")),
    exp.From: ("this",),
    exp.Table: ("this", "alias"),
    exp.TableAlias: ("this", "columns"),
    exp.Join: ("this", "side", "kind", "on", "using"),
    exp.Where: ("this",),
    exp.Group: ("expressions",),
    exp.Having: ("this",),
    exp.Qualify: ("this",),
    exp.Order: ("this", "expressions"),
    exp.Ordered: ("this", "desc", "nulls_first"),
    exp.Limit: ("expression",),
    exp.Distinct: ("expressions",),
    exp.Alias: ("this", "alias"),
    exp.Star: (),
    exp.Column: ("this", "table", "db", "catalog"),
    exp.Identifier: ("this", "quoted"),
    exp.Dot: _BINARY,
    exp.Literal: ("this", "is_string"),
    exp.Boolean: ("this",),
    exp.Null: (),
    exp.Paren: ("this",),
    exp.Case: ("this", "ifs", "default"),
    exp.If: ("this", "true"),
    exp.In: ("this", "expressions", "query"),
    exp.Exists: ("this",),
    exp.Between: ("this", "low", "high"),
    **dict.fromkeys((exp.Not, exp.Neg), ("this",)),
    **dict.fromkeys(
        (
            exp.And, exp.Or, exp.Is, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ,
            exp.NullSafeNEQ, exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.BitwiseAnd, exp.BitwiseOr,
            exp.Like, exp.ILike, exp.Escape, exp.PropertyEQ,
        ),
        _BINARY,
    ),
    exp.DPipe: (*_BINARY, "safe"),
    exp.Div: (*_BINARY, "typed", "safe"),
    exp.IntDiv: _BINARY,
    exp.Cast: ("this", "to"),
    exp.DataType: ("this", "nested"),
    exp.Bracket: ("this", "expressions"),
    exp.Array: ("expressions", "value_constructor"),
    exp.Struct: ("expressions",),
    exp.Lambda: ("this", "expressions"),
    exp.Window: ("this", "partition_by", "order", "spec", "over"),
    exp.WindowSpec: ("kind", "start", "start_side", "end", "end_side"),
    exp.Filter: _BINARY,
    # Functions that answer the same, as they are or as they are rewritten here
    **dict.fromkeys(
        (
            exp.Abs, exp.ArrayAgg, exp.ArraySize, exp.BitwiseAndAgg, exp.BitwiseOrAgg, exp.Explode, exp.Length,
            exp.LogicalAnd, exp.LogicalOr, exp.Lower, exp.Max, exp.Min, exp.Sum, exp.Upper,
        ),
        ("this",),
    ),
    **dict.fromkeys(
        (
            exp.ArgMax, exp.ArgMin, exp.ArrayFilter, exp.Contains, exp.EndsWith, exp.Nullif, exp.RegexpLike,
            exp.StartsWith, exp.Transform,
        ),
        _BINARY,
    ),
    **dict.fromkeys((exp.DenseRank, exp.Rank, exp.RowNumber), ()),
    **dict.fromkeys((exp.Coalesce, exp.Greatest, exp.Least), ("this", "expressions", "ignore_nulls")),
    **dict.fromkeys((exp.Lag, exp.Lead), ("this", "offset", "default")),
    exp.ArraySort: ("this", "nulls_first"),
    exp.Count: ("this", "big_int"),
    exp.RegexpReplace: (*_BINARY, "replacement", "modifiers", "single_replace"),
    exp.Anonymous: ("this", "expressions"),
}  # fmt: skip
_TYPES = frozenset({exp.DType.TEXT, exp.DType.VARCHAR})
_JOINS = frozenset({"", "INNER", "OUTER", "CROSS"})
_DIGITS = re.compile(r"\d+")
_GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def translate(text: str, tables: Mapping[str, str], places: int = MOST_PLACES) -> str:
    """Return a query in Spark's SQL.

    Parameters
    ----------
    text : str
        A query that ``engine.checked`` has passed.
    tables : mapping of str to str
        The tables that it may read, in lower case, and the views that they are on Spark.
    places : int
        So many of the lowest places are in ``first_places``.

    Raises
    ------
    QueryError
        A part of it has no form on Spark with the same answer.
    """
    tree = _checked(text)
    for table in list(tree.find_all(exp.Table)):
        _rename(table, tables, text)
    return _written(tree, places)


def translate_expression(text: str) -> str:
    """Return an expression over columns in Spark's SQL; errors as in ``translate``."""
    (expression,) = _checked(f"SELECT {text}").expressions
    return _written(expression, MOST_PLACES)


def _written(tree: exp.Expr, places: int) -> str:
    # With a parent, so that the query as a whole can be replaced
    holder = exp.Paren(this=tree)
    # The inner nodes first: those around copy them
    for node in reversed(list(tree.dfs())):
        change = _CHANGES.get(type(node))
        made = None if change is None else change(node)
        if made is not None:
            node.replace(made)
    for node in holder.find_all(exp.Anonymous):
        if node.name == _LOWEST:
            node.set("expressions", [*node.expressions[:2], _number(places)])
    written = holder.this.sql(dialect="spark", identify=True, comments=False, unsupported_level=ErrorLevel.RAISE)
    # Spark replaces ${env:NAME} in the text of a statement, in its literals too, by a variable of the environment
    return str(written).replace("${", r"\u0024{")


def _checked(text: str) -> Any:
    """Return the tree of a query, all of whose nodes are on the list."""
    try:
        tree = parse_one(text, read="duckdb")
    except SqlglotError as error:
        raise QueryError(f"cannot be written for Spark: {str(error).splitlines()[0]}") from None
    for node in tree.walk():
        complaint = _complaint(node)
        if complaint:
            raise _refusal(node, text, complaint)
    return tree


def _refusal(node: exp.Expr, text: str, complaint: str) -> QueryError:
    starts = [each.meta["start"] for each in node.walk() if "start" in each.meta]
    offset = len(text[: starts[0]].encode()) if starts else -1
    return QueryError(f"{complaint} has no form on Spark with the same answer", text, offset)


def _complaint(node: exp.Expr) -> str:
    """What is wrong with a node; empty if nothing is."""
    parts = _NODES.get(type(node))
    name = node.name if isinstance(node, exp.Anonymous) else node.key
    if parts is None:
        return name
    for part, value in node.args.items():
        if value and part not in parts:
            return f"{name} with {part.strip('_')}"
    if any(_is_doubtful(node, node.args.get(side)) for side in _BINARY):
        return "an expression that needs parentheses"
    test = _TESTS.get(type(node))
    return test(node) if test else ""


# Operators of one level, and of the two in the middle, have other orders in other dialects
_LEVELS: dict[type[exp.Expr], int] = {
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ), 1),
    **dict.fromkeys((exp.Is, exp.In, exp.Between, exp.Like, exp.ILike), 1),
    **dict.fromkeys((exp.BitwiseAnd, exp.BitwiseOr, exp.DPipe), 2),
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.Div, exp.IntDiv), 3),
}


def _is_doubtful(node: exp.Expr, operand: Any) -> bool:
    """Whether an operator and one in its operand could change places in another dialect."""
    outer, inner = _LEVELS.get(type(node)), _LEVELS.get(type(operand))
    if outer is None or inner is None:
        return False
    return (outer == inner == 1) or (outer == 2 and type(node) is not type(operand)) or inner < outer


def _test_order(node: Any) -> str:
    inside = isinstance(node.parent, (exp.Select, exp.SetOperation, exp.Window))
    return "" if inside else "ORDER BY in a function"


def _test_aggregate(node: Any) -> str:
    """Lists keep their nulls by an expression, which is no aggregate itself."""
    return "list with FILTER or OVER" if isinstance(node.parent, (exp.Filter, exp.Window)) else ""


def _test_helper(node: Any) -> str:
    helper = _HELPERS.get(node.name.lower())
    return node.name if helper is None or helper(node) is None else ""


def _test_pattern(node: Any) -> str:
    return "" if _is_text(node.expression) and _java_pattern(node.expression.name) else "this pattern"


def _test_replacement(node: Any) -> str:
    if not _is_text(node.args.get("modifiers")) or node.args["modifiers"].name != "g":
        return "regexp_replace without the option g"
    replacement = node.args.get("replacement")
    if not _is_text(replacement) or set("\\$") & set(replacement.name):
        return "this replacement"
    return _test_pattern(node)


def _test_literal(node: Any) -> str:
    if not node.is_string:
        return "" if _DIGITS.fullmatch(node.name) else "a number with other signs than digits"
    # GUIDs are text there
    return "a GUID in upper case" if _GUID.fullmatch(node.name) and node.name != node.name.lower() else ""


def _test_bracket(node: Any) -> str:
    (index, *more) = node.expressions
    return "" if not more and isinstance(index, exp.Literal) and not index.is_string else "this subscript"


def _test_like(node: Any) -> str:
    return "" if _is_text(node.expression) else f"{node.key} of a pattern that is no text"


def _test_cast(node: Any) -> str:
    times = [column for column in node.find_all(exp.Column) if column.name.lower() == "time"]
    return "a cast of a time" if times else ""


_TESTS: dict[type[exp.Expr], Callable[[Any], str]] = {
    exp.Anonymous: _test_helper,
    exp.ArrayAgg: _test_aggregate,
    exp.Bracket: _test_bracket,
    exp.Cast: _test_cast,
    exp.DataType: lambda node: "" if node.this in _TYPES else f"the type {node.this.value}",
    exp.ILike: _test_like,
    exp.Join: lambda node: "" if node.kind in _JOINS else f"{node.kind} JOIN",
    exp.Like: _test_like,
    exp.Literal: _test_literal,
    exp.Order: _test_order,
    exp.RegexpLike: _test_pattern,
    exp.RegexpReplace: _test_replacement,
    exp.Table: lambda node: "" if isinstance(node.this, exp.Identifier) else "this table",
}


def _is_text(node: Any) -> bool:
    return isinstance(node, exp.Literal) and node.is_string


# Names of tables


def _rename(table: exp.Table, tables: Mapping[str, str], text: str) -> None:
    """Let a table be the view that it is on Spark; the names that a query itself defines stay."""
    name = table.name.lower()
    if name in _defined(table):
        return
    if name not in tables:
        raise QueryError(f"no table is called {table.name}", text)
    if not table.alias:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name)))
    table.set("this", exp.to_identifier(tables[name]))


def _defined(table: exp.Table) -> set[str]:
    """The common table expressions that may be named at a place: an expression sees the ones before it."""
    found: set[str] = set()
    node: Any = table
    while node.parent is not None:
        above = node.parent
        if isinstance(node, exp.CTE):
            before = above.expressions[: above.expressions.index(node)]
            found |= {each.alias.lower() for each in before}
        elif not isinstance(node, exp.With) and above.args.get("with_"):
            found |= {each.alias.lower() for each in above.args["with_"].expressions}
        node = above
    return found


# Regular expressions of RE2, which DuckDB has, as those of Java

_ESCAPES = frozenset("dDwWnrt")
_SAME_ESCAPE = re.compile(r"[^0-9A-Za-z]")


def _java_pattern(pattern: str) -> str:
    """Return a pattern that finds the same; empty if it has what the two understand in different ways."""
    # Only a line feed ends a line
    made, at, in_class = ["(?d)"], 0, False
    while at < len(pattern):
        sign = pattern[at]
        if sign == "\\":
            escaped = pattern[at + 1 : at + 2]
            if escaped not in _ESCAPES and not _SAME_ESCAPE.fullmatch(escaped):
                return ""
            made.append(sign + escaped)
            at += 2
            continue
        if (in_class and (sign == "[" or pattern.startswith("&&", at))) or pattern.startswith("(?", at):
            return ""
        in_class = sign == "[" or (in_class and sign != "]")
        # Java's $ finds the end of the last line as well
        made.append("\\z" if sign == "$" and not in_class else sign)
        at += 1
    return "".join(made)


# What is written in another way


def _call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _number(value: int) -> exp.Literal:
    return exp.Literal(this=str(value), is_string=False)


def _first_places(node: Any) -> exp.Expr | None:
    if len(node.expressions) != 1:
        return None
    (place,) = node.expressions
    return _call(_LOWEST, place.copy(), place.copy())


def _named_bits(node: Any) -> exp.Expr | None:
    if len(node.expressions) != 2 or not isinstance(node.expressions[1], exp.Array):
        return None
    bits, names = node.expressions
    cases = []
    for at, name in enumerate(names.expressions):
        bit = exp.Paren(this=exp.BitwiseAnd(this=bits.copy(), expression=_number(1 << at)))
        cases.append(exp.Case(ifs=[exp.If(this=exp.NEQ(this=bit, expression=_number(0)), true=name.copy())]))
    return _call("array_compact", exp.Array(expressions=cases))


def _list_slice(node: Any) -> exp.Expr | None:
    if len(node.expressions) != 3 or not all(isinstance(each, exp.Literal) for each in node.expressions[1:]):
        return None
    begin, end = (int(each.name) for each in node.expressions[1:])
    return (
        _call("slice", node.expressions[0].copy(), _number(begin), _number(max(end - begin + 1, 0))) if begin else None
    )


#: The functions that have no class of their own in trees: what each becomes, or None with other arguments.
_HELPERS: dict[str, Callable[[Any], exp.Expr | None]] = {
    "first_places": _first_places,
    "list_slice": _list_slice,
    "named_bits": _named_bits,
}


def _helper(node: Any) -> exp.Expr | None:
    return _HELPERS[node.name.lower()](node)


def _without_qualify(node: Any) -> exp.Expr | None:
    """QUALIFY as the WHERE of a query around; columns without a name keep their places."""
    qualify = node.args.get("qualify")
    if qualify is None:
        return None
    node.set("qualify", None)
    outer = exp.Select(expressions=[exp.Star(except_=[exp.to_identifier("kept_rows")])])
    for part in ("with_", "distinct", "order", "limit"):
        moved = node.args.get(part)
        node.set(part, None)
        outer.set(part, moved)
    inner = node.copy()
    inner.append("expressions", exp.alias_(qualify.this, "kept_rows"))
    outer.set("from_", exp.From(this=inner.subquery("qualified")))
    outer.set("where", exp.Where(this=exp.Column(this=exp.to_identifier("kept_rows"))))
    return outer


def _quotient(node: Any) -> exp.Expr:
    """A quotient of whole numbers, which is a number with a fraction in DuckDB."""
    double = exp.DataType(this=exp.DType.DOUBLE)
    sides = (exp.Cast(this=node.args[side].copy(), to=double.copy()) for side in _BINARY)
    return exp.Div(**dict(zip(_BINARY, sides, strict=True)), typed=True, safe=False)


def _without_hint(node: Any) -> None:
    node.set("materialized", None)


def _list(node: Any) -> exp.Expr:
    """A list with its nulls, which collect_list leaves out."""
    each = exp.to_identifier("each")
    item = exp.Struct(expressions=[exp.PropertyEQ(this=exp.to_identifier("item"), expression=node.this.copy())])
    body = exp.Dot(this=each.copy(), expression=exp.to_identifier("item"))
    return exp.Transform(this=exp.ArrayAgg(this=item), expression=exp.Lambda(this=body, expressions=[each]))


def _without_nulls(node: Any) -> exp.Expr | None:
    """The value at the lowest or highest other value, of the rows that have both."""
    known = exp.Not(this=exp.Is(this=node.this.copy(), expression=exp.Null()))
    if isinstance(node.parent, exp.Filter):
        condition = node.parent.expression
        condition.set("this", exp.And(this=exp.Paren(this=condition.this), expression=known))
        return None
    return exp.Filter(this=node.copy(), expression=exp.Where(this=known))


def _element(node: Any) -> exp.Expr:
    """An item of a list, or null; the parser counts from 0, and Spark's function from 1."""
    return _call("try_element_at", node.this.copy(), _number(int(node.expressions[0].name) + 1))


def _like(node: Any) -> None:
    """A pattern in which a backslash is itself, as in DuckDB."""
    if not isinstance(node.parent, exp.Escape):
        node.set("expression", exp.Literal.string(node.expression.name.replace("\\", "\\\\")))


def _regular_expression(node: Any) -> None:
    node.set("expression", exp.Literal.string(_java_pattern(node.expression.name)))
    if isinstance(node, exp.RegexpReplace):
        # Spark's replaces all
        node.set("modifiers", None)
        node.set("single_replace", None)


#: The nodes that are written in another way, and what each becomes; None where only parts of it change.
_CHANGES: dict[type[exp.Expr], Callable[[Any], exp.Expr | None]] = {
    exp.Anonymous: _helper,
    exp.ArgMax: _without_nulls,
    exp.ArgMin: _without_nulls,
    exp.ArrayAgg: _list,
    exp.Bracket: _element,
    exp.CTE: _without_hint,
    exp.Div: _quotient,
    exp.ILike: _like,
    exp.Like: _like,
    exp.RegexpLike: _regular_expression,
    exp.RegexpReplace: _regular_expression,
    exp.Select: _without_qualify,
}
