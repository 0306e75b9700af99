"""The use cases that both front ends drive: install, prove, look after. They know ports, never adapters."""
