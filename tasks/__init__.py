"""What is studied: one package a study."""
