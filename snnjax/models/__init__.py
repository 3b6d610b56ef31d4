"""Whole networks as published, in one call each, and weights of other libraries for them."""

from snnjax.models.networks import ms_resnet as ms_resnet
from snnjax.models.networks import sew_resnet as sew_resnet
from snnjax.models.networks import spikformer as spikformer
from snnjax.models.networks import vgg as vgg
from snnjax.models.spikingjelly import from_spikingjelly as from_spikingjelly
