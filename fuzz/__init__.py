"""What can be run of a protocol: faults put in, instances with data; the numpy model is to come."""
