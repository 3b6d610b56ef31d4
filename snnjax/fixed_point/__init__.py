"""Networks in the integers of a chip, bit for bit: conversion, running, and training straight through.

`FixedPoint` is the arithmetic of a chip, a value; a chip is named here only where an independent simulator of it gives
the same bits in our tests.
"""

from snnjax.fixed_point._apply import Headroom as Headroom
from snnjax.fixed_point._apply import Integers as Integers
from snnjax.fixed_point._apply import apply as apply
from snnjax.fixed_point._apply import headroom as headroom
from snnjax.fixed_point._apply import on_chip as on_chip
from snnjax.fixed_point._apply import run as run
from snnjax.fixed_point._chips import LAVA_LOIHI as LAVA_LOIHI
from snnjax.fixed_point._chips import SPECK as SPECK
from snnjax.fixed_point._chips import XYLO as XYLO
from snnjax.fixed_point._chips import FixedPoint as FixedPoint
from snnjax.fixed_point._convert import LayerReport as LayerReport
from snnjax.fixed_point._convert import Report as Report
from snnjax.fixed_point._convert import convert as convert
from snnjax.fixed_point._network import IntegerLayer as IntegerLayer
from snnjax.fixed_point._network import IntegerNetwork as IntegerNetwork
from snnjax.fixed_point._step import Membranes as Membranes
from snnjax.fixed_point._step import Neurons as Neurons
from snnjax.fixed_point._xylo import from_xylo as from_xylo
from snnjax.fixed_point._xylo import to_xylo as to_xylo
