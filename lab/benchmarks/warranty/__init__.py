"""What the promises of ``calibrate`` accept, and how often they are broken."""
