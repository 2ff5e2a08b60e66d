"""The engine process: its requests and replies, and what it does with them."""
