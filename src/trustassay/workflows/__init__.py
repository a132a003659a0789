"""What is done with runs and beside them, one file or folder a command."""
