"""The report of a run: figures out of job histories, as text and as one self-contained page."""
