"""Clusters with Kueue: the doctor that looks them over, the watchdog that lets go of them."""
