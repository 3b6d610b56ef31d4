"""Behind `snnjax.ops.lif_network`: its records, one layer, the chain of layers, the kernels, the primitive, checks."""
