"""The whole way (`way`), more data for an earlier run (`update`), and a sharded corpus to its labels (`sharded`).

What a run leaves behind: checkpoints while it works, a record of what was done, and folders. Nothing is imported here:
where data comes from (`source`) must not load any model.
"""
