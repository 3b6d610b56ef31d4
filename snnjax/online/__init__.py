r"""Online learning: gradients at every step, in constant memory.

A rule makes a `Learner` from a network and the loss of one step, ``loss(output, targets)`` with
``output[batch, outputs]``: a pure function ``step(params, carry, inputs, targets) -> (carry, gradients, output)`` of
``inputs[batch, inputs]``, for `jax.jit`, `jax.lax.scan` and any optimiser. Where back-propagation through time stores
every step, each neuron accumulates traces of its state :math:`h`, with weights :math:`W` and spikes :math:`s`:

.. math::

    \epsilon_t &= \frac{\partial h_t}{\partial h_{t-1}} \epsilon_{t-1} + \frac{\partial h_t}{\partial W} \\
    \mathrm{gradient}_t &= \frac{\partial \mathrm{loss}_t}{\partial s_t} \frac{\partial s_t}{\partial h_t} \epsilon_t

* `eprop`: traces of the neurons' states, ``[batch, inputs, neurons]``, filtered as the readout filters spikes; the
  loss reaches a layer by back-propagation within the step, or through random matrices.
* `ostl`: traces of the neurons' states; the loss reaches a layer by back-propagation within the step.
* `ottt`: traces of the inputs only, ``[batch, inputs]``; the loss as for `ostl`.
* `truncated`: the last inputs, ``[window, batch, inputs]``, and back-propagation through those steps.

Summed over the steps of a sequence, the gradients equal those of back-propagation through time, up to rounding, if only
a neuron's own states carry information from step to step: `eprop` for one feed-forward layer of generalised LIF neurons
below a leaky readout with a single decay; `ostl` for one such layer below a readout without memory, or for a spiking
readout by itself; `ottt` for the same networks of LIF neurons with a single decay and a detached reset other than
"zero", which ends the influence of earlier inputs; `truncated` if the window holds the whole sequence. Otherwise they
are approximations, which ignore what recurrent spikes and deeper layers carry from step to step.

In layers with a `capacity`, only listed neurons affect the loss, as in `Network.apply`.

A penalty on rates, such as `snnjax.losses.activity_upper_bound`, depends on all spikes of a sequence. The first three
rules therefore carry a running estimate :math:`r_t` of each neuron's rate, its mean so far, and add to the gradient of
each step

.. math::

    \frac{\partial \mathrm{penalty}}{\partial r}(r_t) \frac{\partial s_t}{\partial h_t} \epsilon_t

with traces that the readout does not filter (Bellec et al. 2020, firing rate regularisation). Each layer's penalty
reaches its own weights. If the estimate is the rate of the sequence, the mean over its steps is the gradient of the
penalty by back-propagation through time, for the layers named above; otherwise it differs by as much as the estimate
does. The first steps of a sequence estimate it badly, so let a new carry start with the `rates` of the carry before.
`truncated` has no penalty.
"""

from snnjax.online.learner import Learner as Learner
from snnjax.online.rules import OnlineCarry as OnlineCarry
from snnjax.online.rules import eprop as eprop
from snnjax.online.rules import ostl as ostl
from snnjax.online.rules import ottt as ottt
from snnjax.online.rules import random_feedback as random_feedback
from snnjax.online.window import Window as Window
from snnjax.online.window import truncated as truncated
