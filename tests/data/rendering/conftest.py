from seeded import seed  # noqa: F401
