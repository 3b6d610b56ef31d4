"""Second thresholds of a training run: those of the layers unless they are given, and looked at where they are."""

import optax
import pytest

from snnjax import layer, leaky_readout, losses, network, neurons, train


def test_layers_keep_their_second_thresholds_by_default() -> None:
    assert train.second_threshold_at(train.TrainConfig(), 0) is None


def test_a_final_one_needs_a_first_one() -> None:
    with pytest.raises(ValueError) as error:
        train.TrainConfig(final_second_threshold=0.95)
    assert str(error.value) == (
        "TrainConfig: `second_threshold` must be given beside a final one, got None. "
        "Set both, for instance second_threshold=0.8."
    )


@pytest.mark.parametrize("final", [False, True])
def test_one_that_is_not_below_the_threshold_gives_a_warning(final: bool) -> None:
    net = network(4, [layer(8, neurons.lif(threshold=0.5), capacity=4)], leaky_readout(3))
    given = {"second_threshold": 0.4, "final_second_threshold": 0.9} if final else {"second_threshold": 0.9}
    with pytest.warns(RuntimeWarning) as caught:
        train.make_train_step(net, losses.cross_entropy_sum, optax.adam(1e-2), train.TrainConfig(**given))
    assert [str(each.message) for each in caught] == [
        "TrainConfig: `second_threshold` must lie below the threshold, 0.5, got 0.9. "
        "Leave it None to have nine tenths of the way from rest to the threshold."
    ]
