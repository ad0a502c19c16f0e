"""May a call run: rules and how they are judged."""
