"""What chat templates need: a sandbox with limits, and messages prepared so that they cannot forge turns."""
