"""Trained runs behind HTTP: many requests at once, answered in batches, as the command line answers them one by one."""
