"""What can be run of a protocol: the executable numpy model is to come; nothing is here yet."""
