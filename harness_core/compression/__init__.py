"""What a model request holds when the conversation has grown too long: where to cut, and what stands for the rest."""
