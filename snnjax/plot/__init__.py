"""Figures of spikes, membranes and training, drawn with matplotlib (extra ``cli``).

Colours are those of Okabe and Ito (2008, "Color Universal Design"), which are safe for all types of colour vision.
"""

from snnjax.plot import _style
from snnjax.plot._animation import animate as animate
from snnjax.plot._layers import overview as overview
from snnjax.plot._membranes import membranes as membranes
from snnjax.plot._sample import raster as raster
from snnjax.plot._sample import sample as sample
from snnjax.plot._save import save as save
from snnjax.plot._training import activity as activity
from snnjax.plot._training import curves as curves

BLUE, ORANGE, GREEN = _style.BLUE, _style.ORANGE, _style.GREEN
PINK, SKY, RED = _style.PINK, _style.SKY, _style.RED
