"""What is complete: promises that nothing older will come."""
