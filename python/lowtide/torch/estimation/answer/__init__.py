"""From a model and an example to the answer: the question, the sizes that are tried, and what came of it."""
