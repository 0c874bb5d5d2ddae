"""Owns what a C or C++ program needs of a compiled model: an object file, a shared object, a header with its functions.

`header` writes the header from `template.h`, `call` the C of one call, `sizes` the C of symbolic sizes; `objects` names
the code's symbols after the model and puts weights in.
"""
