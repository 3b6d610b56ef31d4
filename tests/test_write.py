"""Atomic writing: nothing that lies in the folder beforehand is written to, and nothing is left behind."""

import os
import re
import stat
from pathlib import Path

import pytest

from snnjax._write import remove_partial_files, write_atomically


def error_of(path: Path) -> str:
    with pytest.raises(ValueError) as caught:
        write_atomically("save_checkpoint", path, b"new")
    return str(caught.value)


def test_a_link_in_place_of_the_file_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_bytes(b"precious")
    (tmp_path / "file").symlink_to(tmp_path / "precious")
    write_atomically("save_checkpoint", tmp_path / "file", b"new")
    assert (tmp_path / "precious").read_bytes() == b"precious"
    assert (tmp_path / "file").read_bytes() == b"new" and not (tmp_path / "file").is_symlink()


def test_links_that_wait_for_partial_files_are_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "precious").write_bytes(b"precious")
    for name in ("file.partial", "file.part"):  # names that can be guessed
        (tmp_path / name).symlink_to(tmp_path / "precious")
    write_atomically("save_checkpoint", tmp_path / "file", b"new")
    # Even a guess of the whole name is refused.
    monkeypatch.setattr("secrets.token_hex", lambda _: "guessed")
    (tmp_path / ".guessed.partial").symlink_to(tmp_path / "precious")
    text = f"got {str(tmp_path / 'file')!r} (File exists). Make room, or name another folder."
    assert error_of(tmp_path / "file").endswith(text)
    assert (tmp_path / "precious").read_bytes() == b"precious"
    assert (tmp_path / "file").read_bytes() == b"new"


@pytest.mark.parametrize("moment", ["fsync", "replace"])
@pytest.mark.parametrize("old", [True, False])
def test_a_failure_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, old: bool
) -> None:
    path = tmp_path / "file"
    if old:
        write_atomically("save_checkpoint", path, b"old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, moment, full)
    assert error_of(path) == (
        f"save_checkpoint: `path` must be a file that can be written, got {str(path)!r} "
        "(No space left on device). Make room, or name another folder."
    )
    assert [file.name for file in tmp_path.iterdir()] == ["file"] * old
    assert not old or path.read_bytes() == b"old"


def test_others_may_read_what_the_mask_lets_them(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically("save_checkpoint", tmp_path / "file", b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


def test_partial_files_have_other_names_each_time_and_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "replace", lambda *_: None)  # as if killed just before
    for _ in range(3):
        write_atomically("save_checkpoint", tmp_path / ("x" * 255), b"new")
    names = {file.name for file in tmp_path.iterdir()}
    assert len(names) == 3 and all(re.fullmatch(r"\.[0-9a-f]{16}\.partial", name) for name in names)
    (tmp_path / "mine.partial").touch()
    remove_partial_files(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.partial"]


def test_a_file_that_someone_writes_to_is_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync, seen = os.fsync, []

    def cleaned(descriptor: int) -> None:  # by another run, before the file has its name
        remove_partial_files(tmp_path)
        seen.append(len(list(tmp_path.iterdir())))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", cleaned)
    write_atomically("save_checkpoint", tmp_path / "file", b"new")
    assert seen == [1, 1] and (tmp_path / "file").read_bytes() == b"new"
