"""What ms-distify knows about MindSpore, as data."""
