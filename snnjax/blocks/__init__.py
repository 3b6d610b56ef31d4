"""Blocks: pure functions of whole sequences, of which `snnjax.network` makes networks."""

from snnjax.blocks.block import Block as Block
from snnjax.blocks.block import BlockResult as BlockResult
from snnjax.blocks.block import Context as Context
from snnjax.blocks.block import dense_signal as dense_signal
from snnjax.blocks.conv import conv1d as conv1d
from snnjax.blocks.conv import conv2d as conv2d
from snnjax.blocks.delay import DelayParams as DelayParams
from snnjax.blocks.delay import DelayState as DelayState
from snnjax.blocks.delay import axonal as axonal
from snnjax.blocks.dense import dense as dense
from snnjax.blocks.dropout import dropout as dropout
from snnjax.blocks.join import join as join
from snnjax.blocks.linear import LinearParams as LinearParams
from snnjax.blocks.norm import NormParams as NormParams
from snnjax.blocks.norm import NormStats as NormStats
from snnjax.blocks.norm import batch_norm as batch_norm
from snnjax.blocks.norm import layer_norm as layer_norm
from snnjax.blocks.pool import flatten as flatten
from snnjax.blocks.pool import max_pool as max_pool
from snnjax.blocks.pool import mean_pool as mean_pool
from snnjax.blocks.pool import sum_pool as sum_pool
from snnjax.blocks.rate_pool import max_rate_pool as max_rate_pool
from snnjax.blocks.readout import integrator as integrator
from snnjax.blocks.spiking import SpikingParams as SpikingParams
from snnjax.blocks.spiking import SpikingState as SpikingState
from snnjax.blocks.spiking import spiking as spiking
