//! How replicas are divided over weighted clusters.
