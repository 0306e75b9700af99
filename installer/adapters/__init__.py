"""The only doors to the world, one module per port; whatever goes wrong there becomes a Problem here."""
