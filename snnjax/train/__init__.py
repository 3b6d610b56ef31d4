"""A small training loop over the library, meant to be read and copied: the step, the epoch loop, the checkpoint."""

from snnjax.train.checkpoint import load_checkpoint as load_checkpoint
from snnjax.train.checkpoint import read_header as read_header
from snnjax.train.checkpoint import save_checkpoint as save_checkpoint
from snnjax.train.checkpoint import write_atomically as write_atomically
from snnjax.train.config import TrainConfig as TrainConfig
from snnjax.train.config import learning_rate_schedule as learning_rate_schedule
from snnjax.train.config import make_optimiser as make_optimiser
from snnjax.train.config import second_threshold_at as second_threshold_at
from snnjax.train.loop import FitResult as FitResult
from snnjax.train.loop import fit as fit
from snnjax.train.parallel import data_mesh as data_mesh
from snnjax.train.progress import read_run as read_run
from snnjax.train.step import TrainState as TrainState
from snnjax.train.step import evaluate as evaluate
from snnjax.train.step import make_train_step as make_train_step
from snnjax.train.task_data import TaskData as TaskData
from snnjax.train.task_data import load_task as load_task
from snnjax.train.tasks import LOSSES as LOSSES
from snnjax.train.tasks import TASKS as TASKS
from snnjax.train.tasks import TaskSettings as TaskSettings
from snnjax.train.tasks import build_network as build_network
from snnjax.train.tasks import init_params as init_params
from snnjax.train.tasks import loss_of as loss_of
from snnjax.train.tasks import task_settings as task_settings
from snnjax.train.totals import Totals as Totals
from snnjax.train.totals import summarise as summarise
