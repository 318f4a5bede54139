//! This crate contains only benchmarks; see `benches/`.
