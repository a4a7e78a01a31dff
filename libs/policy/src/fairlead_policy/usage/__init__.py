"""Use beside what runs: `past` decays, `saturation` says which resources are used up (H-DRF)."""
