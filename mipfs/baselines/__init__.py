"""What the papers compare with, one method each: baselines and peers, never a source of bounds."""
