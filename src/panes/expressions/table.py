"""The functions that mean in this process what they mean in Spark: the lines of `functions.txt`."""

from __future__ import annotations

from importlib.resources import files

from panes.expressions.rules import Rule


def _rules() -> dict[str, list[Rule]]:
    found: dict[str, list[Rule]] = {}
    text = (files("panes.expressions") / "functions.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line and not line.startswith("#"):
            rule = Rule.parse(line)
            for name in rule.names:
                found.setdefault(name, []).append(rule)
    return found


RULES = _rules()
