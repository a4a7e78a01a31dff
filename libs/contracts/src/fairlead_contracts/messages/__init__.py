"""The messages between services, a module for each kind of writer."""
