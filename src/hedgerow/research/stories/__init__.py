"""Stories that ``hedgerow demo`` tells besides the first one: many models, and a false discovery."""
