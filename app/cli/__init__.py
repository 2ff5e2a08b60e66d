"""The command line, one file per group of commands. It knows no Qt."""
