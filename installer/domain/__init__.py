"""What is true and what follows from it: pure values and functions, no I/O, no threads, no Qt, no gettext."""
