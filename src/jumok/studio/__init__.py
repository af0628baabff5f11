"""A page where people look: `jumok studio`."""
