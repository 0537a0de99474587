"""The kit of the HTTP API: door, schemas, errors, stream, description."""
