"""The models on this disk, the models known, and the way from one to the other."""
