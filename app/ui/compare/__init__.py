"""Side by side: variants of a network on the same image with the same noise, in a window of their own."""
