"""Work outside the window thread: threads and the engine process."""
