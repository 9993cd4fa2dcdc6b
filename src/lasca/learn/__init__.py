"""How models learn: the contract of a learner, the loop of EM and VB. There is no model in it."""

from lasca.learn.em import EmRun, LoopSettings, loop_settings, run_em
from lasca.learn.learner import Checkpoint, Learner, run_learner

__all__ = ["Checkpoint", "EmRun", "Learner", "LoopSettings", "loop_settings", "run_em", "run_learner"]
