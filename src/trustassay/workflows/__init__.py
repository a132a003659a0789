"""What is done with runs and next to them, one file or folder a command."""
