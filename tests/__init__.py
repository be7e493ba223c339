"""The tests: folders mirror the source; shared means are in `tests.helpers`."""
