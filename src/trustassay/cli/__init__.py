"""The command line: its modules only parse arguments and print."""
