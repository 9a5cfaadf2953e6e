"""How the embedded voice is made: a teacher's speech, and the small models that learn from it."""
