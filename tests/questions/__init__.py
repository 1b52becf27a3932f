"""What the page "Questions" answers, run with PyTorch: a test has the name of its question's anchor."""
