"""`panes run --state`: every row of the files is read once, however often the command is killed.

What has been read of each file is the query's position. Answers of a push go to a file with the
number of the push: one that was killed before it was written is written by the next run.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from panes.cli.files import InputFiles
from panes.cli.meter import meter, reached_by
from panes.cli.outputs import OutputFile
from panes.errors import OptionError
from panes.process.running_query import RunningQuery


def answers_folder(output: str) -> Path:
    """The folder that answers go to, made if there is none."""
    if output == "-" or Path(output).suffix or Path(output).is_file():
        raise OptionError(
            f"with --state, --output is a folder, got {output}", hint="--output answers"
        )
    try:
        Path(output).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(f"--output {output}: {error.strerror}") from None
    return Path(output)


def answer_kept(
    asked: RunningQuery, sources: Sequence[InputFiles], folder: Path, batch_rows: int
) -> int:
    """Push what is not in yet; says how many answers that gave. The streams do not end."""
    count = 0
    for answers in asked.last_answers:
        _write(folder, asked.pushes, answers)
    read: dict[str, int] = dict(asked.position or {})
    with meter("rows", None) as bar:
        for source in sources:
            for file in source.files:
                name, end = f"{source.name}={os.path.realpath(file)}", 0
                for batch in replace(source, files=(file,)).batches(batch_rows):
                    begin, end = end, end + len(batch)
                    new = batch.slice(max(read.get(name, 0) - begin, 0))
                    if len(new):
                        read[name] = end
                        asked.position = read
                        answers = asked.push(**{source.name: new})
                        count += _write(folder, asked.pushes, answers)
                    bar.advance(len(batch), lambda: reached_by(asked))
    asked.close()
    return count


def _write(folder: Path, push: int, answers: pa.Table) -> int:
    if len(answers):
        OutputFile(str(folder / f"{push:06}.parquet")).write(answers)
    return len(answers)
