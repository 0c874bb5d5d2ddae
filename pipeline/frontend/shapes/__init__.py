"""What torch promises about sizes, compared with what the lowered program computes.

`expressions` reads numbers of the program as polynomials in torch's symbols; `held_casts` keeps casts to known sizes
until they can be judged, and checks those and the shapes of results that are not proved when the program runs.
"""
