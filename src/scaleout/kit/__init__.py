"""All that a lab may import."""
