"""importer."""
