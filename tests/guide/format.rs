//! Rust blocks of the book have rustfmt's default style, so that pasted code passes `cargo fmt --check` in a new
//! project.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Writes each Rust block of a page to its own file below `folder`, named after the page and the line of the block.
fn write_blocks(page: &str, text: &str, folder: &Path) -> Vec<PathBuf> {
    let lines: Vec<&str> = text.lines().collect();
    let starts = lines.iter().enumerate().filter(|(_, line)| **line == "```rust").map(|(start, _)| start + 1);
    let files = starts.map(|start| {
        let block: String =
            lines[start..].iter().take_while(|line| **line != "```").flat_map(|line| [*line, "\n"]).collect();
        let file = folder.join(format!("{}_{start}.rs", page.replace(['/', '.', '-'], "_")));
        fs::write(&file, block).unwrap();
        file
    });
    files.collect()
}

/// Returns the files that differ from rustfmt's default style.
fn unformatted_files(files: &[PathBuf], folder: &Path) -> String {
    // An empty configuration, because this repository's own allows longer lines.
    fs::write(folder.join("rustfmt.toml"), "").unwrap();
    let mut rustfmt = Command::new("rustfmt");
    rustfmt.args(["--edition", "2024", "--check", "-l", "--config-path"]).arg(folder).args(files);
    let output = rustfmt.output().expect("rustfmt is a component of the toolchain");
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn rust_blocks_have_the_default_format() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("blocks");
    let _none = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let files: Vec<PathBuf> = crate::links::pages()
        .iter()
        .flat_map(|page| {
            let name = page.strip_prefix(crate::links::root()).unwrap().display().to_string();
            write_blocks(&name, &fs::read_to_string(page).unwrap(), &folder)
        })
        .collect();
    assert!(files.len() > 50, "{}", files.len());
    let control = folder.join("control.rs");
    fs::write(&control, "fn main( ) {}\n").unwrap();
    let found = unformatted_files(&[control], &folder);
    assert!(found.contains("control.rs"), "the check finds faults: {found}");
    let found = unformatted_files(&files, &folder);
    assert!(found.is_empty(), "format these blocks as `cargo fmt` does without a rustfmt.toml:\n{found}");
}
