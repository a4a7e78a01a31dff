"""Publishing jobs and following what becomes of them."""
