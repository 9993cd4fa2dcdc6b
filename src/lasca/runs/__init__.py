"""What a run of the pipeline leaves behind: checkpoints while it works, a record of what was done, and OUT."""
