"""The folder of a run belongs to one run: a second one is refused, and a dead one is forgotten."""

import errno
import fcntl
import os
import platform
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jax
import pytest

from snnjax import cli, losses, train
from snnjax.train.lock import locked
from tests.train.toy import CONFIG, NET, VALIDATION

# Another run: it says when it has locked the folder, and lasts until it is killed.
OTHER = """
import sys, time
from snnjax.train.lock import locked

with locked(sys.argv[1]):
    print("locked", flush=True)
    time.sleep(600)
"""


def fit(folder: Path, **options):
    params = NET.init(jax.random.key(0))
    options = {"loss": losses.cross_entropy_sum, "config": CONFIG, "folder": folder} | options
    return train.fit(NET, params, lambda epoch: 1 / 0, VALIDATION, **options)


@contextmanager
def other_run(folder: Path) -> Iterator[subprocess.Popen]:
    command = [sys.executable, "-c", OTHER, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "locked\n"
        try:
            yield process
        finally:
            process.kill()


def refusal(folder: Path, process: int) -> str:
    return (
        f"fit: `folder` must belong to one run, got {str(folder)!r} of process {process} on {platform.node()}. "
        "Wait until that one has ended, or choose another folder."
    )


def test_a_second_run_in_the_folder_is_refused_until_the_first_is_dead(tmp_path, capsys) -> None:
    with other_run(tmp_path) as process:
        partial = tmp_path / ".0123456789abcdef.partial"
        partial.write_bytes(b"of the other run")
        text = refusal(tmp_path, process.pid)
        for options in ({}, {"overwrite": True}, {"resume": True}):
            with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
                fit(tmp_path, **options)
        assert cli.main(["train", "--task", "vowels", "--overwrite", "--out", str(tmp_path)]) == 2
        assert capsys.readouterr().err == f"snnjax: {text}\n"
        assert partial.exists()
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert (tmp_path / ".lock").exists()
    with locked(tmp_path):
        assert not partial.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_locked_in_one_process_too_and_as_long_as_its_owner_says(tmp_path) -> None:
    with locked(tmp_path) as folder:
        with pytest.raises(ValueError, match=f"^{re.escape(refusal(tmp_path, os.getpid()))}$"):
            fit(tmp_path)
        with pytest.raises(ZeroDivisionError):  # its data
            fit(folder)
        with pytest.raises(ValueError, match="must belong to one run"):
            fit(tmp_path)
    with pytest.raises(ZeroDivisionError):
        fit(tmp_path)


def test_a_lock_file_removed_meanwhile_is_made_again(tmp_path, monkeypatch) -> None:
    take = fcntl.flock

    def late(file, how) -> None:
        monkeypatch.setattr(fcntl, "flock", take)
        (tmp_path / ".lock").unlink()  # by the run before, which ends just now
        take(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with locked(tmp_path):
        assert (tmp_path / ".lock").read_text() == f"process {os.getpid()} on {platform.node()}\n"
        with pytest.raises(ValueError, match="must belong to one run"), locked(tmp_path):
            pass


def test_a_file_system_without_locks_is_warned_about(tmp_path, monkeypatch) -> None:
    def without(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", without)
    text = (
        "fit: `folder` must be on a file system with locks for a second run in it to be noticed, "
        f"got {str(tmp_path)!r} (No locks available). Start no other run in it."
    )
    with pytest.warns(RuntimeWarning, match=f"^{re.escape(text)}$"), pytest.raises(ZeroDivisionError):
        fit(tmp_path)
