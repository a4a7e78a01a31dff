"""Processes that tests start: services, commands and interpreters, each watched and ended by its pid."""
