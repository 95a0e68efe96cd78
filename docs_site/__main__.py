"""`python -m docs_site FOLDER`: build the site into a folder; any warning is an error."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from docs_site.lay_out import lay_out
from docs_site.places import ROOT


def build(site: Path) -> None:
    """Lay out all pages, and let MkDocs make the site of them."""
    with tempfile.TemporaryDirectory(prefix="panes-docs-") as folder:
        settings = lay_out(Path(folder))
        mkdocs = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
        quiet = {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
        subprocess.run(
            [*mkdocs, "-f", str(settings), "-d", str(site.resolve())],
            check=True,
            env={**os.environ, **quiet},
        )


if __name__ == "__main__":
    build(Path(sys.argv[1]))
