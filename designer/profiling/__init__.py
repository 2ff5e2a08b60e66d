"""Time, cost and utilisation of every layer, each figure with its source."""
