"""Figures of spikes, membranes and training, drawn with matplotlib (extra ``cli``).

Colours are those of Okabe and Ito (2008, "Color Universal Design"), which are safe for all types of colour vision.
"""

from snnjax._plots import style
from snnjax._plots.animation import animate as animate
from snnjax._plots.confusion import confusion as confusion
from snnjax._plots.layers import overview as overview
from snnjax._plots.membranes import membranes as membranes
from snnjax._plots.sample import raster as raster
from snnjax._plots.sample import sample as sample
from snnjax._plots.save import save as save
from snnjax._plots.training import activity as activity
from snnjax._plots.training import curves as curves

BLUE, ORANGE, GREEN = style.BLUE, style.ORANGE, style.GREEN
PINK, SKY, RED = style.PINK, style.SKY, style.RED
