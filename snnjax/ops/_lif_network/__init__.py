"""The parts of `snnjax.ops.lif_network`: records, one layer, the chain of layers, kernels, primitive, checks."""
