"""Times, costs, peaks and counters of a run, as the profile that the window and the command line show; predictions and advice."""
