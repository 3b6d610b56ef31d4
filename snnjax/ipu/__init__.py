"""The IPU: its device, profiles of what a program would cost on it, and sessions.

For now the device is a model of the IPU (``xla_ext/ipu_model/README.md`` lists what it covers): nothing has run on IPU
hardware.
"""

from snnjax.ipu._custom_op import CustomOp as CustomOp
from snnjax.ipu._custom_op import custom_op as custom_op
from snnjax.ipu.profiles.costs import Codelet as Codelet
from snnjax.ipu.profiles.costs import Phases as Phases
from snnjax.ipu.profiles.limits import Limit as Limit
from snnjax.ipu.profiles.measure import profile as profile
from snnjax.ipu.profiles.measure import read_profile as read_profile
from snnjax.ipu.profiles.parts import PartCost as PartCost
from snnjax.ipu.profiles.profile import Profile as Profile
from snnjax.ipu.profiles.sweep import Sweep as Sweep
from snnjax.ipu.profiles.sweep import SweepRow as SweepRow
from snnjax.ipu.profiles.sweep import sweep as sweep
from snnjax.ipu.session import OutOfTileMemory as OutOfTileMemory
from snnjax.ipu.session import Session as Session
from snnjax.ipu.session import get_session as get_session
