"""What the window knows of the engine process: client, analysis, playback and profiling. No widgets."""
