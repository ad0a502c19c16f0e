"""Stores of journals: in memory (memory.py) and in one SQLite file (sqlite.py).  Imports nothing by itself."""
