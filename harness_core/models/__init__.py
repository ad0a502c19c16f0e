"""Adapters to language models, each a ChatModel.  Importing the package loads none of them."""
