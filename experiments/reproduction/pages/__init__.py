"""What was measured, put into words, tables and pictures: one file for each section of the page."""
