"""Statements made of all objects together: jobs, pools and queues. Pure."""
