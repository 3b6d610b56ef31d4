"""Where data sets come from: the publisher's addresses and checksums.

The MD5 sums are those that publishers give on their pages or that their archives (figshare, Mendeley Data) show; they
find damage, not malice. Addresses and sums are those that other public programs download and check (Tonic,
SpikingJelly), read on 29 November 2026. Of the sizes only that of CIFAR-10 was found. None of these has been
downloaded from its publisher by this function yet.
"""

from typing import NamedTuple


class Archive(NamedTuple):
    """A file to download and unpack."""

    name: str
    address: str | None  # None: the publisher wants a visit to its page
    md5: str | None  # None: none is published
    result: str  # what unpacking it makes, in the folder of the data set


class Source(NamedTuple):
    """A data set as its publisher offers it."""

    page: str
    licence: str
    archives: tuple[Archive, ...]
    folder: str = "."  # what readers are given, within the folder of the data set


_HEIDELBERG = "https://zenkelab.org/datasets"
_MENDELEY = "https://data.mendeley.com/public-files/datasets/468j46mzdv/files"
_FIGSHARE = "https://ndownloader.figshare.com/files"
_FSDD = "https://github.com/Jakobovski/free-spoken-digit-dataset"


def _heidelberg(file: str, md5: str) -> Archive:
    return Archive(f"{file}.zip", f"{_HEIDELBERG}/{file}.zip", md5, file)


def _figshare(class_name: str, number: int, md5: str) -> Archive:
    return Archive(f"{class_name}.zip", f"{_FIGSHARE}/{number}", md5, class_name)


SOURCES = {
    "shd": Source(
        "https://zenkelab.org/resources/spiking-heidelberg-datasets-shd/",
        "CC BY 4.0",
        (
            _heidelberg("shd_train.h5", "f3252aeb598ac776c1b526422d90eecb"),
            _heidelberg("shd_test.h5", "1503a5064faa34311c398fb0a1ed0a6f"),
        ),
    ),
    "ssc": Source(
        "https://zenkelab.org/resources/spiking-heidelberg-datasets-shd/",
        "CC BY 4.0",
        (
            _heidelberg("ssc_train.h5", "d102be95e7144fcc0553d1f45ba94170"),
            _heidelberg("ssc_valid.h5", "b4eee3516a4a90dd0c71a6ac23a8ae43"),
            _heidelberg("ssc_test.h5", "a35ff1e9cffdd02a20eb850c17c37748"),
        ),
    ),
    "nmnist": Source(
        "https://doi.org/10.17632/468j46mzdv.1",
        "see its page",
        (
            Archive(
                "Train.zip",
                f"{_MENDELEY}/39c25547-014b-4137-a934-9d29fa53c7a0/file_downloaded",
                "20959b8e626244a1b502305a9e6e2031",
                "Train",
            ),
            Archive(
                "Test.zip",
                f"{_MENDELEY}/05a4d654-7e03-4c15-bdfa-9bb2bcbea494/file_downloaded",
                "69ca8762b2fe404d9b9bad1103e97832",
                "Test",
            ),
        ),
    ),
    "dvs-gesture": Source(
        "https://ibm.ent.box.com/s/3hiq58ww1pbbjrinh367ykfdf60xsfm8",
        "see its LICENSE.txt",
        (Archive("DvsGesture.tar.gz", None, "8a5c71fb11e24e5ca5b11866ca6c00a1", "DvsGesture"),),
        "DvsGesture",
    ),
    "cifar10-dvs": Source(
        "https://figshare.com/articles/dataset/CIFAR10-DVS_New/4724671",
        "see its page",
        (
            _figshare("airplane", 7712788, "0afd5c4bf9ae06af762a77b180354fdd"),
            _figshare("automobile", 7712791, "8438dfeba3bc970c94962d995b1b9bdd"),
            _figshare("bird", 7712794, "a9c207c91c55b9dc2002dc21c684d785"),
            _figshare("cat", 7712812, "52c63c677c2b15fa5146a8daf4d56687"),
            _figshare("deer", 7712815, "b6bf21f6c04d21ba4e23fc3e36c8a4a3"),
            _figshare("dog", 7712818, "f379ebdf6703d16e0a690782e62639c3"),
            _figshare("frog", 7712842, "cad6ed91214b1c7388a5f6ee56d08803"),
            _figshare("horse", 7712851, "e7cbbf77bec584ffbf913f00e682782a"),
            _figshare("ship", 7712836, "41c7bd7d6b251be82557c6cce9a7d5c9"),
            _figshare("truck", 7712839, "89f3922fd147d9aeff89e76a2b0b70a7"),
        ),
    ),
    "fsdd": Source(
        _FSDD,
        "CC BY-SA 4.0",
        (
            Archive(
                "v1.0.10.tar.gz", f"{_FSDD}/archive/v1.0.10.tar.gz", None, "free-spoken-digit-dataset-1.0.10"
            ),
        ),
        "free-spoken-digit-dataset-1.0.10/recordings",
    ),
    "cifar10": Source(
        "https://www.cs.toronto.edu/~kriz/cifar.html",
        "see its page",
        (
            Archive(
                "cifar-10-binary.tar.gz",  # 170,052,171 bytes
                "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                "c32a1d4ab5d03f1284b67883e8d87530",
                "cifar-10-batches-bin",
            ),
        ),
        "cifar-10-batches-bin",
    ),
}
