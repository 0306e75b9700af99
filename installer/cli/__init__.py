"""The command line: the same steps as the window, without one."""
