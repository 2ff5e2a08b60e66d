"""The program: window, command line and engine process."""
