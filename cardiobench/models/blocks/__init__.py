"""Networks, encoders and preparations that several families of models share."""
