//! The roles on all three clusters are exactly what the program needs.
