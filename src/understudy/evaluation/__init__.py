"""How good synthetic rows are: scores beside a floor and a baseline, and the report people look at."""
