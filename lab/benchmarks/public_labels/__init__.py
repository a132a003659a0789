"""Every metric that applies, compared with the labels of eight public sets that we did not write."""
