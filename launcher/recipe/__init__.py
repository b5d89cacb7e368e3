"""What a person asks for: the schema, and all that reads, checks and writes a recipe."""
