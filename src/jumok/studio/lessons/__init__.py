"""The lessons: the lab's experiments in order, with words in two languages and something to turn."""
