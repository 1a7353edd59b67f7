"""Resources that processes share."""
