"""What CUDA kernels take for themselves besides their results."""
