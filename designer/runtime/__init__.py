"""Running a network: plan, incremental session, engines, images."""
