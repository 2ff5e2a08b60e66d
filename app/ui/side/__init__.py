"""Side by side: variants of a network on the same picture with the same noise, in a window of their own."""
