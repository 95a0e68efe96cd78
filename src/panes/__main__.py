"""`python -m panes`: the command line, where the folder of the command is not on the PATH."""

from __future__ import annotations

from panes.cli.main import main

if __name__ == "__main__":
    main()
