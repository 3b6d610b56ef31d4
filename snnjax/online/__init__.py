"""Online learning: gradients in every step from traces, in constant memory.

A rule makes a `Learner` out of a network and the loss of one step, ``loss(output, targets)`` with
``output[batch, outputs]``: a pure function ``step(params, carry, inputs, targets) -> (carry, gradients, output)`` of
``inputs[batch, inputs]``, for `jax.jit`, `jax.lax.scan` and any optimiser. What back-propagation through time keeps of
every step, a trace sums up::

    trace[t] = d state[t] / d state[t-1] * trace[t-1] + d state[t] / d weights        (of each neuron by itself)
    gradient[t] = (d loss[t] / d spikes[t]) * (d spikes[t] / d state[t]) * trace[t]

* `eprop`: traces of the neurons' states, ``[batch, inputs, neurons]``, filtered as the read-out filters spikes; the
  loss reaches a layer through the weights, backwards within the step, or through random matrices.
* `ostl`: traces of the neurons' states; the loss through the weights, backwards within the step.
* `ottt`: traces of the inputs alone, ``[batch, inputs]``; the loss likewise.
* `truncated`: the last inputs, ``[window, batch, inputs]``, and back-propagation through these steps.

Summed over the steps of a sequence, the gradients equal back-propagation through time, up to rounding, where nothing
but a neuron's own states leads from step to step: `eprop` for one feed-forward layer of generalised LIF neurons below a
leaky read-out of one decay, `ostl` for one below a read-out without memory or for a spiking read-out by itself, `ottt`
likewise for LIF neurons of one decay with a detached reset; `truncated` wherever the window holds the sequence. Beyond
this they are approximations: what recurrent spikes and deeper layers carry from step to step is left out.

In layers with a `capacity`, listed neurons alone write what the loss reads, as in `Network.apply`.
"""

from snnjax.online.learner import Learner as Learner
from snnjax.online.rules import OnlineCarry as OnlineCarry
from snnjax.online.rules import eprop as eprop
from snnjax.online.rules import ostl as ostl
from snnjax.online.rules import ottt as ottt
from snnjax.online.rules import random_feedback as random_feedback
from snnjax.online.window import Window as Window
from snnjax.online.window import truncated as truncated
