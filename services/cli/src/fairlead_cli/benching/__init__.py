"""What an order costs on this machine: `fairlead bench`. Pools are made up, and the same each time."""
