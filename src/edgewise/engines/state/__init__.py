"""Keep the state of kernels in versioned files, on disk or on a URI."""
