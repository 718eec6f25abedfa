"""The trace of training steps on fake tensors: every operation, the memory that it takes, and when that is freed."""
