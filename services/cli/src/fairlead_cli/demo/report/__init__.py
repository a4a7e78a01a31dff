"""What a run came to: figures out of job histories, and the report as text and as one self-contained page."""
