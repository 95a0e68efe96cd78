"""What a page says in words."""

from __future__ import annotations

import re
from pathlib import Path


def prose(page: Path) -> str:
    """A page without its blocks of code and without code inside lines."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"``[^`]+``|`[^`\n]+`(?!\])", "", text)
