"""A register on Spark as something that runs: a streaming query that is waited for and stopped."""

from __future__ import annotations

from abc import ABC, abstractmethod
from threading import RLock
from typing import NoReturn

from pyspark.sql.streaming.query import StreamingQuery

from panes.errors import FailedQueryWarning, QueryError, warn
from panes.sharing.failures import set_aside_words
from panes.spark.register.run import RegisterRun
from panes.spark.register.watched_queries import LOG

_START = 'reg.start(checkpoint="folder", sink="another") reads and answers'


class RunningRegister(ABC):
    """A register while it runs, and between its runs."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._run: RegisterRun = RegisterRun(self._lock, self._at_end, self._recover)
        self._untold: list[str] = []

    def push(self, *unnamed: object, **batches: object) -> NoReturn:  # noqa: ARG002
        """Refused: rows come from the DataFrames."""
        raise QueryError("a register on Spark reads DataFrames, and takes no rows", hint=_START)

    @property
    def query(self) -> StreamingQuery | None:
        """Spark's streaming query; None while there is none."""
        return self._run.query

    def _how(self) -> str:
        """Whether it runs, in a word."""
        if self._run.start is None:
            return "stopped" if self._run.has_ended else "not started"
        query = self._run.query
        return "running" if query is not None and query.isActive else "stopped"

    def stop(self) -> None:
        """End the streaming query; `start` on the same checkpoint goes on."""
        with self._lock:
            self._run.end()
            self._run.halt()
        self._warn()

    def await_end(self, timeout: float | None = None) -> bool:
        """Wait until the register ends, for so many seconds at most; says whether it has.

        If it fails, its exception is raised here. A query that fails is set aside (`failed`), and
        the others go on.
        """
        if not (self._run.has_begun or self._run.has_ended):
            raise QueryError("the register has not been started, so it never ends", hint=_START)
        return self._run.await_end(timeout, self._warn)

    def process_all_available(self) -> None:
        """Wait until everything that is there now has been taken in and answered."""
        self._run.process_all_available()
        self._warn()

    @abstractmethod
    def _recover(self, failure: BaseException) -> bool:
        """A batch has failed: set aside the queries at fault, if any, and go on with the others.

        Says whether the register has gone on.
        """

    @abstractmethod
    def _at_end(self) -> None:
        """The register has ended, by itself or because it was told to."""

    def _tell(self, name: str, reason: str) -> None:
        """A query is set aside: log it, and warn whoever waits next."""
        words = set_aside_words(name, reason)
        self._untold.append(words)
        LOG.warning("%s", words)

    def _warn(self) -> None:
        """Warn of queries that were set aside meanwhile, at the line of whoever waits."""
        with self._lock:
            untold, self._untold = self._untold, []
        for words in untold:
            warn(words, FailedQueryWarning)
