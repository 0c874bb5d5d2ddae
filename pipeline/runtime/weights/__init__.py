"""Weights bound and watched: where they lie, whether they changed, binding them again."""
