"""The picture of capacities and second thresholds: what is trained for it, and that it is drawn."""

from itertools import product

from tests.benchmarks.trained import capacities


def test_every_pair_is_trained_once_beside_the_full_gradient(tmp_path, capsys, monkeypatch) -> None:
    asked = []

    def judge(settings):
        asked.append((settings.capacity, settings.training.second_threshold))
        return capacities.Judged(0.9, 0.01)

    monkeypatch.setattr(capacities, "judge", judge)
    assert capacities.main([str(tmp_path / "picture.png")]) == 0
    pairs = product(capacities.CAPACITIES, capacities.SECOND_THRESHOLDS)
    assert asked == [(None, None), *pairs]
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out.count("accuracy=0.9") == len(asked)
