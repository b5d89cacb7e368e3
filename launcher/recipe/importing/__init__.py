"""Other tools' files read as recipes: `launcher import FILE`."""
