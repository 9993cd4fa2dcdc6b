"""The loop of EM and VB, which lives in `lasca.learn` (kept here for those who know it by this name)."""

from lasca.learn.em import EmRun, LoopSettings, loop_settings, run_em

__all__ = ["EmRun", "LoopSettings", "loop_settings", "run_em"]
