"""`jumok doctor`: everything that can be known of a run before it begins."""
