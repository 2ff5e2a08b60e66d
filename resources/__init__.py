"""Data files: schema, icons, themes, templates of generated files."""
