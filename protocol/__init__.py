"""What is checked: the model of a protocol, and the front ends that read one from sources."""
