"""One claim against passages: claims, what is read of the passages, and the verdict."""
