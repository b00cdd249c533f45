"""The build chain: from one text file to notebooks, goldens and the table of labs. Never imported by the library."""
