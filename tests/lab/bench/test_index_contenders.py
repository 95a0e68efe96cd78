"""Who is compared with a window index: all find the same rows, and Redis comes if it can."""

from __future__ import annotations

import importlib.util
import shutil

import pytest

from lab.bench import index_contenders
from lab.bench.index import check
from lab.bench.index_contenders import ByDeques, ByPanes, ByPolars, ByRedis, contenders


def test_contenders_are_compared_before_they_are_timed() -> None:
    class Forgetful(ByDeques):
        name = "forgetful"

        def rows(self, value: float) -> object:
            found = super().rows(value)
            assert isinstance(found, list)
            return found[1:]

    check([ByPanes(), ByDeques(), ByPolars()])
    with pytest.raises(AssertionError, match="forgetful and panes differ"):
        check([ByPanes(), Forgetful()])


def test_redis_is_left_out_with_the_reason_where_it_is_not_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: dict[str, object] = {"redis-server": None, "redis": None}
    monkeypatch.setattr(shutil, "which", found.get)
    monkeypatch.setattr(importlib.util, "find_spec", found.get)
    assert "no redis-server" in (index_contenders.why_no_redis() or "")
    found["redis-server"] = "/usr/bin/redis-server"
    assert "client for Python" in (index_contenders.why_no_redis() or "")
    assert ByRedis not in contenders()
    found["redis"] = object()
    assert index_contenders.why_no_redis() is None
    assert ByRedis in contenders()
