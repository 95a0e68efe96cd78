"""Lines of the function table: how each is read, and the translation of a call.

A line has four parts: names, parameters, result, and DuckDB's text, in which ``{0}`` is the first
argument. Parameters are types; a name in capitals (``T``) is any type, the same wherever it stands
(``O``: any whose order is certain, so no array, map or struct; ``Z``: any, and -0.0 becomes 0.0);
``any`` is any type; ``?`` behind one says that it may be left out, ``*`` that it may be repeated.
``#`` in front says that it must be written as a constant. The result is a type, or the name of a
parameter's type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from panes.expressions import types as t
from panes.expressions.casts import cast
from panes.expressions.typed import Typed, refuse, widened
from panes.expressions.typed import bound as bound_once

_ORDERED, _ZEROED = "O", "Z"


@dataclass(frozen=True, slots=True)
class Parameter:
    """The types that one argument may have."""

    kind: str
    optional: bool = False
    repeated: bool = False
    constant: bool = False

    @classmethod
    def parse(cls, text: str) -> Parameter:
        kind = text.strip("#?* ")
        return cls(kind, "?" in text, "*" in text, text.strip().startswith("#"))


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of the table."""

    names: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    result: str
    text: str

    @classmethod
    def parse(cls, line: str) -> Rule:
        names, parameters, result, text = (part.strip() for part in line.split("|", 3))
        taken = tuple(Parameter.parse(p) for p in parameters.split(",") if p.strip())
        return cls(tuple(names.split()), taken, result, text)

    def fits(self, arguments: Sequence[Typed]) -> list[Typed] | None:
        """The arguments as the text takes them; None: this line is not for them."""
        parameters = list(self.parameters)
        if parameters and parameters[-1].repeated:
            last = parameters[-1]
            parameters += [last] * (len(arguments) - len(parameters))
        least = sum(not (p.optional or p.repeated) for p in parameters)
        if not least <= len(arguments) <= len(parameters):
            return None
        bound = self._bound(arguments, parameters)
        if bound is None:
            return None
        found = []
        for argument, parameter in zip(arguments, parameters, strict=False):
            if parameter.constant and not argument.is_constant:
                return None
            brought = brought_to(argument, parameter.kind, bound)
            if brought is None:
                return None
            found.append(brought)
        return found

    def _bound(
        self, arguments: Sequence[Typed], parameters: Sequence[Parameter]
    ) -> dict[str, pa.DataType] | None:
        """The meaning of the names in capitals."""
        bound: dict[str, pa.DataType] = {}
        has_array = any(_variable(p.kind)[1] for p in parameters)
        wider = t.tightest if has_array else t.wider
        for argument, parameter in zip(arguments, parameters, strict=False):
            name, is_array = _variable(parameter.kind)
            if name is None:
                continue
            kind = argument.type
            if is_array:
                if kind != t.VOID and not t.is_array(kind):
                    return None
                kind = t.VOID if kind == t.VOID else kind.value_type
            wide = wider(bound.get(name, t.VOID), kind)
            if wide is None:
                return None
            if name == _ORDERED and t.is_nested(wide):
                return None
            if name == _ZEROED and t.is_nested(wide) and t.has_floats(wide):
                return None
            bound[name] = wide
        return bound

    def call(self, arguments: Sequence[Typed], fitted: Sequence[Typed]) -> Typed:
        """The translation of a call."""
        parameters = list(self.parameters)
        bound = self._bound(arguments, parameters + parameters[-1:] * len(arguments)) or {}
        kind = _resolved(self.result, bound, fitted)
        text = self._filled(fitted, [], 0)
        return Typed(f"CAST({text} AS {t.duckdb_name(kind)})", kind)

    def _filled(self, values: Sequence[Typed], texts: list[str], at: int) -> str:
        """The text with its arguments; one that stands in it twice is worked out once.

        A constant stays one.
        """
        if at == len(values):
            return self.text.format(*texts, *("NULL",) * 6, all=", ".join(texts))
        text = values[at].text
        if values[at].is_constant or self.text.count(f"{{{at}}}") < 2:
            return self._filled(values, [*texts, text], at + 1)
        return bound_once(text, lambda name: self._filled(values, [*texts, name], at + 1))


def _variable(kind: str) -> tuple[str | None, bool]:
    if kind.startswith("array<") and kind[6:-1].isupper():
        return kind[6:-1], True
    return (kind, False) if kind.isupper() else (None, False)


def _resolved(result: str, bound: dict[str, pa.DataType], fitted: Sequence[Typed]) -> pa.DataType:
    name, is_array = _variable(result)
    if name is not None:
        kind = bound.get(name, t.VOID)
        return pa.list_(kind) if is_array else kind
    if result.startswith("{"):
        return fitted[int(result[1:-1])].type
    found = t.parse_type(result)
    assert found is not None, result
    return found


def brought_to(value: Typed, kind: str, bound: dict[str, pa.DataType]) -> Typed | None:
    """An argument in the type of its parameter, as Spark brings it there; None: it does not."""
    name, is_array = _variable(kind)
    if name is not None:
        wide = widened(value, pa.list_(bound[name]) if is_array else bound[name])
        return _zeroed(wide) if name == _ZEROED and t.is_float(bound[name]) else wide
    if kind == "any":
        return value
    if kind in _GROUPS:
        is_of = _GROUPS[kind]
        if is_of(value.type):
            return value
        if value.type == t.VOID and kind in _DEFAULTS:
            return widened(value, _DEFAULTS[kind])
        if kind == "moment" and value.type in (t.STRING, t.DATE):
            return cast(value, t.TIMESTAMP)
        return None
    to = t.parse_type(kind)
    assert to is not None, kind
    return coerced(value, to)


def _zeroed(value: Typed) -> Typed:
    """An array in which -0.0 is 0.0, which is what adding 0.0 does to it."""
    return Typed(f"list_transform({value.text}, lambda e: e + CAST(0 AS DOUBLE))", value.type)


def coerced(value: Typed, to: pa.DataType) -> Typed | None:
    """A value where a type is expected: as it is, widened, or read from text."""
    if value.type == to:
        return value
    if t.wider(value.type, to) == to:
        return widened(value, to)
    moments = (t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ)
    if value.type in moments and to in moments:
        return cast(value, to)
    if value.type == t.STRING and (to in moments or t.is_number(to) or to == t.BOOLEAN):
        return cast(value, to)
    if to == t.STRING and (t.is_integer(value.type) or value.type in (t.DATE, t.BOOLEAN)):
        return cast(value, to)
    if to == t.STRING and (
        t.is_decimal(value.type) or value.type in moments or value.type == t.DOUBLE
    ):
        return cast(value, to)
    if t.is_float(to) and t.is_number(value.type):
        return widened(value, to)
    return None


_GROUPS: dict[str, Callable[[pa.DataType], bool]] = {
    "integer": t.is_integer,
    "number": t.is_number,
    "fraction": t.is_float,
    "decimal": t.is_decimal,
    "array": t.is_array,
    "void": lambda kind: kind == t.VOID,
    "map": t.is_map,
    "struct": t.is_struct,
    "moment": lambda kind: kind in (t.TIMESTAMP, t.TIMESTAMP_NTZ),
}
_DEFAULTS = {"moment": t.TIMESTAMP}


def fitting(rules: Sequence[Rule], arguments: Sequence[Typed]) -> Typed | None:
    """A call by the line that is for its arguments: as they are, or else as they are brought to."""
    found: tuple[Rule, list[Typed]] | None = None
    for rule in rules:
        fitted = rule.fits(arguments)
        if fitted is None:
            continue
        if all(one.type == other.type for one, other in zip(fitted, arguments, strict=True)):
            return rule.call(arguments, fitted)
        found = found or (rule, fitted)
    return None if found is None else found[0].call(arguments, found[1])


def built(name: str, rules: Sequence[Rule], arguments: Sequence[Typed]) -> Typed:
    """A call by the line that is for its arguments."""
    found = fitting(rules, arguments)
    if found is None:
        given = ", ".join(a.name for a in arguments)
        raise refuse(f"`{name}` of ({given}) is not translated")
    return found


def taken(name: str, arguments: Sequence[Typed], parameters: str) -> list[Typed]:
    """The arguments of a call as its parameters take them, written as in a line of the table."""
    fitted = Rule.parse(f"{name} | {parameters} | any | ").fits(arguments)
    if fitted is None:
        given = ", ".join(a.name for a in arguments)
        raise refuse(f"`{name}` of ({given}) is not translated")
    return fitted
