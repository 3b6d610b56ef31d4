"""What runs alongside training: the progress bar says what it is waiting for."""

import tqdm

from snnjax.train.background import draw_bar


def test_bar_says_compiling_until_the_first_step_and_then_counts(capsys) -> None:
    with draw_bar(wanted=True, total=4, done=0) as advance:
        assert "compiling:   0%" in capsys.readouterr().err
        advance()
        for bar in tqdm.tqdm._instances:  # the first of them may be too early to be drawn again
            bar.refresh()
        shown = capsys.readouterr().err
        assert "training:  25%" in shown and "1/4" in shown and "compiling" not in shown


def test_bar_that_is_not_wanted_draws_nothing(capsys) -> None:
    with draw_bar(wanted=False, total=4, done=0) as advance:
        advance()
    assert capsys.readouterr() == ("", "")
