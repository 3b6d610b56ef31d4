"""The IPU: its device, what a program would cost on it, and sessions.

Today the IPU is a model of it (``xla_ext/ipu_model/README.md`` says what it covers): nothing has run on IPU hardware.
"""

from snnjax.ipu._profile import Codelet as Codelet
from snnjax.ipu._profile import Phases as Phases
from snnjax.ipu._profile import Profile as Profile
from snnjax.ipu._profiling import profile as profile
from snnjax.ipu._profiling import read_profile as read_profile
from snnjax.ipu.session import OutOfTileMemory as OutOfTileMemory
from snnjax.ipu.session import Session as Session
from snnjax.ipu.session import get_session as get_session
