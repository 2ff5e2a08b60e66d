"""Number formats of a network: emulated runs, named variants, mixed precision."""
