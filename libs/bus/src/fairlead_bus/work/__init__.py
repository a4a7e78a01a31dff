"""Work queues: a worker that takes each message to its end, in turns."""
