"""The front end that reads a protocol from Ascend C kernel sources."""
