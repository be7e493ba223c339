"""What several tests share: real models, tiny models, slow reference computations."""
