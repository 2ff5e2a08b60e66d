"""What a run takes and why: times, costs, measured peaks, and the record that the window and the command line show."""
