"""One file for each kind of server. What was read is named with its commit; `name#1` is an issue or a pull request."""
