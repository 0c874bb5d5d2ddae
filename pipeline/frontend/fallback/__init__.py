"""What cannot be lowered runs in ATen: the graph in compiled parts and single nodes that torch runs between them.

fakes         shapes of ops that torch's capture does not know
unsupported   which nodes cannot be lowered, as far as that is known before lowering is tried
sizes         sizes taken from the arguments, so that they do not cut the graph
partition     the parts and the order in which they and the nodes run
part          one part as a source of a Program
steps         what runs: compiled parts and nodes, on the values so far
profile       where the time of such a call goes
executable    the executable of such a plan
build         from a captured graph to that executable
"""
