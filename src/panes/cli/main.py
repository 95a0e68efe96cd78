"""The command line: `main` is the table of contents, every command a file of its own.

Data goes to stdout, everything else to stderr. Exit code 0: done; 1: failed; 2: asked wrongly.
"""

from __future__ import annotations

import atexit
import os
import re
import sys
import warnings
from importlib import metadata
from typing import Annotated, TextIO

import typer

from panes.cli import demo, explain, lab, live, register, run, verify
from panes.cli.show import say
from panes.errors import ASKED_WRONGLY, PanesError

INTERRUPTED = 130

app = typer.Typer(
    name="panes",
    help="Sliding-window queries over data streams at the price of tumbling ones.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command(epilog=run.EXAMPLE)(run.run)
app.command(epilog=register.EXAMPLE)(register.register)
app.command(epilog=explain.EXAMPLE)(explain.explain)
app.command(epilog=verify.EXAMPLE)(verify.verify)
app.command(add_help_option=False, context_settings=lab.FORWARDED)(lab.bench)
app.command(epilog=demo.EXAMPLE)(demo.demo)
app.command(epilog=live.EXAMPLE)(live.live)
app.command(add_help_option=False, context_settings=lab.FORWARDED)(lab.papers)


def _say_version(asked: bool) -> None:
    if asked:
        print(metadata.version("panes"))
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version and exit.",
            callback=_say_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Sliding-window queries over data streams at the price of tumbling ones."""
    del version


def _fall_silent() -> None:
    """After the last word: libraries that count what they did not free tell it at the very end."""
    sys.stderr.flush()
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)


_OPTION = re.compile(r"""\b(lateness|max_answers|rows_late|store)=(?:["']([^"']*)["']|(\w+))""")


def _as_typed(message: str) -> str:
    """A message whose options are written as they are typed here, and not in Python.

    >>> _as_typed('Hint: lateness="10 seconds", or a datetime.timedelta')
    "Hint: --lateness '10 seconds'"
    """

    def typed(found: re.Match[str]) -> str:
        name, text, word = found.groups()
        return f"--{name.replace('_', '-')} " + (word if text is None else f"'{text}'")

    return _OPTION.sub(typed, message.replace(", or a datetime.timedelta", ""))


def _tell_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A warning in its own words; the line of code that it is about is not the user's."""
    del category, filename, lineno, file, line
    say(f"panes: {message}")


def main() -> None:
    """Run the command line."""
    run_app(app)


def run_app(app: typer.Typer) -> None:
    """Run a command line; one clear message instead of a traceback."""
    atexit.register(_fall_silent)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _tell_warning
            app()
    except PanesError as failure:
        say(f"panes: {_as_typed(str(failure))}")
        sys.exit(2 if isinstance(failure, ASKED_WRONGLY) else 1)
    except SystemExit as stop:
        if stop.code == INTERRUPTED:
            say("panes: stopped; nothing was written")
        raise
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except OSError as failure:
        place = f"{failure.filename}: " if failure.filename else ""
        say(f"panes: {place}{failure.strerror or failure}")
        sys.exit(1)
