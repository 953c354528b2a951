"""What can be proved of a protocol: the properties, and the engines that decide them."""
