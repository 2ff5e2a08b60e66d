"""The operators that come with the program, one file each, in a package per category."""
