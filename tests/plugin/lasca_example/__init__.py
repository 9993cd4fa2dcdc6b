"""What a package must do to extend LASCA: one file each for a truth model, a format and a text model."""
