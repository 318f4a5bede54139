//! Tests of the book: its programs compile and pass their tests, its links point to existing files, and its English is
//! plain.

mod filters;
mod format;
mod glossary;
mod links;
mod notice;
mod options;
mod prose;
mod public_api;
mod readme;
mod recipes;
mod renames;
mod versions;

/// One module per program of the book, collected by `build.rs`.
#[expect(
    dead_code,
    missing_debug_implementations,
    unreachable_pub,
    reason = "each module is a program of the book, which has a `main`"
)]
#[expect(
    clippy::pedantic,
    clippy::print_stdout,
    clippy::unit_arg,
    reason = "the book shows what a user writes, without this repository's lints"
)]
mod programs {
    include!(concat!(env!("OUT_DIR"), "/programs.rs"));
}
