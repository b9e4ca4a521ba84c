// Nothing: a library that has none of the symbols that anyone looks for.
