//! Collects the Rust blocks of the book's pages into one module per program, for `programs.rs`.
//!
//! The blocks of a page form one program, in the order in which a reader meets them. A line `<!-- new program -->` starts
//! another one. Blocks marked `rust,ignore` are left out.

use std::{
    env,
    fmt::Write,
    fs, io,
    path::{Path, PathBuf},
};

const NEW_PROGRAM: &str = "<!-- new program -->";

/// The pages whose programs are compiled here: folders and files below `guide/`.
const PAGES: [&str; 4] = ["from-kopf.md", "from-kubebuilder.md", "interpreters.md", "recipes"];

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or(io::ErrorKind::NotFound)?);
    let mut modules = String::new();
    for page in PAGES.iter().map(|page| root.join(page)) {
        println!("cargo::rerun-if-changed={}", page.display());
        for file in markdown_files(&page)? {
            let text = fs::read_to_string(&file)?;
            let name = file.strip_prefix(&root).unwrap_or(&file).display().to_string();
            for (index, program) in programs(&name, &text).iter().enumerate() {
                let module = name.trim_end_matches(".md").replace(['/', '-'], "_");
                let _infallible = writeln!(modules, "mod {module}_{} {{\n{program}}}\n", index + 1);
            }
        }
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    fs::write(out.join("programs.rs"), modules)
}

/// Returns the Markdown files at or below `path`, in a stable order.
fn markdown_files(path: &Path) -> io::Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path)? {
        files.extend(markdown_files(&entry?.path())?);
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "md"));
    files.sort();
    Ok(files)
}

/// Returns the programs of a page. Each block is preceded by a comment with its place, so that an error can be found.
fn programs(name: &str, text: &str) -> Vec<String> {
    let mut programs = vec![String::new()];
    let mut in_block = None;
    for (number, line) in text.lines().enumerate() {
        match in_block {
            None if line.trim() == NEW_PROGRAM => programs.push(String::new()),
            None if line.starts_with("```") => {
                in_block = Some(line == "```rust");
                if let (Some(true), Some(program)) = (in_block, programs.last_mut()) {
                    let _infallible = writeln!(program, "// {name}:{}", number + 2);
                }
            }
            Some(_) if line == "```" => in_block = None,
            None | Some(false) => {}
            Some(true) => {
                if let Some(program) = programs.last_mut() {
                    program.push_str(line);
                    program.push('\n');
                }
            }
        }
    }
    programs.retain(|program| !program.is_empty());
    programs
}
