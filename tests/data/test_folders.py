"""What is missing of a data set is named, and nothing of a whole one."""

import pytest

from snnjax.data import missing_files

FILES = {
    "shd": ("shd_train.h5", "shd_test.h5"),
    "ssc": ("ssc_train.h5", "ssc_valid.h5", "ssc_test.h5"),
    "fashion": (
        "train-images-idx3-ubyte",
        "train-labels-idx1-ubyte.gz",
        "t10k-images-idx3-ubyte.gz",
        "t10k-labels-idx1-ubyte",
    ),
    "dvs-gesture": ("user01_led.aedat", "user01_led_labels.csv", "user24_led.aedat", "user24_led_labels.csv"),
}


def fill(root, name) -> None:
    for file in FILES[name]:
        (root / file).write_bytes(b"content")
    if name == "dvs-gesture":
        (root / "trials_to_train.txt").write_text("user01_led.aedat\n")
        (root / "trials_to_test.txt").write_text("user24_led.aedat\n")


@pytest.mark.parametrize("name", FILES)
def test_of_a_whole_folder_nothing_is_missing(name: str, tmp_path) -> None:
    fill(tmp_path, name)
    assert missing_files(name, tmp_path) == []


@pytest.mark.parametrize("name", FILES)
def test_each_file_that_is_taken_away_or_emptied_is_named(name: str, tmp_path) -> None:
    fill(tmp_path, name)
    for file in FILES[name]:
        content = (tmp_path / file).read_bytes()
        (tmp_path / file).unlink()
        assert missing_files(name, tmp_path) == [file.removesuffix(".gz")]
        if not file.endswith(".gz"):
            (tmp_path / file).write_bytes(b"")
            assert missing_files(name, tmp_path) == [f"{file} (empty: download it again)"]
        (tmp_path / file).write_bytes(content)


def test_recordings_of_nmnist_are_counted(tmp_path) -> None:
    assert missing_files("nmnist", tmp_path) == ["Train", "Test"]
    (tmp_path / "Test.zip").write_bytes(b"content")
    (tmp_path / "Train" / "3").mkdir(parents=True)
    for name in ("00001.bin", "00002.bin", "._00001.bin"):
        (tmp_path / "Train" / "3" / name).touch()
    assert missing_files("nmnist", tmp_path) == ["Train (2 of 60,000 recordings)", "Test (unpack Test.zip)"]


def test_what_is_no_folder_or_no_data_set_is_named(tmp_path) -> None:
    assert missing_files("shd", tmp_path / "nowhere") == [f"{tmp_path / 'nowhere'} (no such folder)"]
    with pytest.raises(ValueError) as error:
        missing_files("mnist", tmp_path)
    assert str(error.value) == (
        "missing_files: `name` must be 'shd', 'ssc', 'dvs-gesture', 'fashion' or 'nmnist', got 'mnist'. "
        "Choose one of these."
    )
