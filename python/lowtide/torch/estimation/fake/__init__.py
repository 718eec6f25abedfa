"""A GPU that is not there: fake tensors on a fake device, and the few values that a program needs of them."""
