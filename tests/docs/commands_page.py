"""The page of all commands, made from the functions behind them.

``python -m tests.docs.commands_page`` writes it again.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from typer.models import ArgumentInfo

import lab.__main__ as lab
from panes.cli.main import app

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "commands.md"
HEAD = """\
# Commands

Every command with every option. This page is made from the commands themselves
(`python -m tests.docs.commands_page`).

Data goes to stdout or to a file, everything else to stderr. The exit code is 0 if all went well,
1 if the work failed, and 2 if the command or the query is wrong. `panes --version` prints the
version, and `panes COMMAND --help` prints what stands here.
"""


def page() -> str:
    """The whole page."""
    of_the_lab = {c.callback.__name__: c for c in lab.app.registered_commands if c.callback}
    listed = [of_the_lab.get(c.callback.__name__, c) for c in app.registered_commands if c.callback]
    commands = [(c.callback, c.epilog) for c in listed]
    return HEAD + "".join("\n" + "\n".join(_section(f, e or "")) + "\n" for f, e in commands)


def _section(command: Any, epilog: str) -> Iterator[str]:
    yield f"## `panes {command.__name__}`"
    yield ""
    yield " ".join((command.__doc__ or "").split())
    yield ""
    yield "| option | default | meaning |"
    yield "|---|---|---|"
    hints = get_type_hints(command, include_extras=True)
    for name, parameter in inspect.signature(command).parameters.items():
        kind, said = get_args(hints[name])
        names = _names(name, kind, said)
        yield f"| {names} | {_default(parameter.default)} | {_meaning(kind, said.help or '')} |"
    yield ""
    yield "```sh"
    yield epilog.removeprefix("Example: ")
    yield "```"


def _names(name: str, kind: object, said: Any) -> str:
    if isinstance(said, ArgumentInfo):
        return f"`{name.upper()}`"
    long = f"--{name.replace('_', '-')}"
    named = [d for d in (said.default, *(said.param_decls or ())) if isinstance(d, str)]
    if kind is bool and not named:
        named = [long, f"--no-{name.replace('_', '-')}"]
    return ", ".join(f"`{n}`" for n in named or [long])


def _default(default: object) -> str:
    if default is inspect.Parameter.empty:
        return "needed"
    if default is None or isinstance(default, bool):
        return "yes" if default else ""
    return f"`{default}`"


def _meaning(kind: object, said: str) -> str:
    choices = [c for part in (kind, *get_args(kind)) if get_origin(part) is Literal
               for c in get_args(part)]  # fmt: skip
    listed = f" One of: {', '.join(f'`{c}`' for c in choices)}." if choices else ""
    return " ".join(said.split()) + listed


if __name__ == "__main__":
    PAGE.write_text(page())
