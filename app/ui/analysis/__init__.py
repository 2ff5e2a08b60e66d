"""The analysis: inputs, options of the analysis layers, outputs and the network overview."""
