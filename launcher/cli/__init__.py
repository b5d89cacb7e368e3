"""The command line: one file for each verb, parse -> call -> print."""
