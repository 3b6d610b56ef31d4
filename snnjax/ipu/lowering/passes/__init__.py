"""What is done to a whole block once its operations are written down."""
