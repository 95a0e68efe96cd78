"""What griffe calls while it reads the source for the API page."""

from __future__ import annotations

from typing import Any

from griffe import Extension

from docs_site.docstrings import fence, part


class ReadableDocstrings(Extension):
    """Rewrites every docstring as it is loaded."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Called for every module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = part(fence(obj.docstring.value))
