"""What an executable tells of itself: profiles, memory, fusion contracts."""
