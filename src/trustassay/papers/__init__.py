"""The experiments of the papers behind trustassay's metrics, and the data that they need."""
