"""Long-term memory: values that outlive a thread, under namespaces and keys."""
