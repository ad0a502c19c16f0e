"""The interceptors that we ship."""
