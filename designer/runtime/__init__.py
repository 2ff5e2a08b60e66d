"""Running a network: plan, incremental session, engines, pictures."""
