"""Metrics of a network: predictions, activity, and NeuroBench's complexity metrics.

All but `gradient_share`, which runs the network, are plain functions of its outputs, activity and parameters.
"""

from snnjax.metrics.activity import activation_sparsity as activation_sparsity
from snnjax.metrics.activity import dropped_share as dropped_share
from snnjax.metrics.activity import mean_activity as mean_activity
from snnjax.metrics.activity import silent_layers as silent_layers
from snnjax.metrics.classification import accuracy as accuracy
from snnjax.metrics.classification import class_accuracy as class_accuracy
from snnjax.metrics.classification import confusion as confusion
from snnjax.metrics.classification import predictions as predictions
from snnjax.metrics.decode import class_first_spikes as class_first_spikes
from snnjax.metrics.decode import class_maxima as class_maxima
from snnjax.metrics.decode import class_sums as class_sums
from snnjax.metrics.diverged import diverged as diverged
from snnjax.metrics.energies import HOROWITZ_45NM as HOROWITZ_45NM
from snnjax.metrics.energies import Energies as Energies
from snnjax.metrics.energies import Energy as Energy
from snnjax.metrics.energies import RectifierEnergy as RectifierEnergy
from snnjax.metrics.energies import SpikingEnergy as SpikingEnergy
from snnjax.metrics.energies import energy as energy
from snnjax.metrics.gradient_share import GradientShare as GradientShare
from snnjax.metrics.gradient_share import gradient_share as gradient_share
from snnjax.metrics.operations import SynapticOperations as SynapticOperations
from snnjax.metrics.operations import connection_sparsity as connection_sparsity
from snnjax.metrics.operations import footprint as footprint
from snnjax.metrics.operations import input_counts as input_counts
from snnjax.metrics.operations import parameter_count as parameter_count
from snnjax.metrics.operations import synaptic_operations as synaptic_operations
from snnjax.metrics.trains import Raster as Raster
from snnjax.metrics.trains import firing_rates as firing_rates
from snnjax.metrics.trains import interval_variations as interval_variations
from snnjax.metrics.trains import raster as raster
