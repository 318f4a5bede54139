//! Collects the Rust blocks of the book's pages into one module per program, for `programs.rs`.
//!
//! The blocks of a page form one program, in order. A line `<!-- new program -->` starts another program. Blocks with
//! other attributes, such as `rust,ignore`, are an error.

use std::{
    env,
    fmt::Write,
    fs, io,
    path::{Path, PathBuf},
};

const NEW_PROGRAM: &str = "<!-- new program -->";

/// A call of [`kctl::App::main`], which parses the process's arguments. A program with such a call is compiled, but not
/// run.
const READS_ARGUMENTS: &str = ".main()";

fn main() -> io::Result<()> {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or(io::ErrorKind::NotFound)?);
    let book = package.join("../../guide");
    println!("cargo::rerun-if-changed={}", book.display());
    let mut modules = String::new();
    for file in markdown_files(&book)? {
        let text = fs::read_to_string(&file)?;
        // Windows has another separator, which no module name can contain.
        let name = file.strip_prefix(&book).unwrap_or(&file).display().to_string().replace('\\', "/");
        for (index, program) in programs(&name, &text).iter().enumerate() {
            let module = name.trim_end_matches(".md").replace(['/', '-'], "_");
            let _infallible = writeln!(modules, "mod {module}_{} {{\n{program}{}}}\n", index + 1, run(program));
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

/// Returns a test that runs the program's `main`; empty if it has none, or one that parses arguments.
fn run(program: &str) -> &'static str {
    let has_main = program.lines().any(|line| line.starts_with("fn main(") || line.starts_with("async fn main("));
    if has_main && !program.contains(READS_ARGUMENTS) {
        "#[test]
fn main_succeeds() {
    assert_eq!(std::process::Termination::report(main()), std::process::ExitCode::SUCCESS);
}
"
    } else {
        ""
    }
}

/// Returns the programs of a page. A comment before each block names its page and line, so that errors can be located.
fn programs(name: &str, text: &str) -> Vec<String> {
    let mut programs = vec![String::new()];
    let mut in_block = None;
    for (number, line) in text.lines().enumerate() {
        match in_block {
            None if line.trim() == NEW_PROGRAM => programs.push(String::new()),
            None if line.starts_with("```") => {
                assert!(
                    line == "```rust" || !line.starts_with("```rust"),
                    "{name}:{}: write ```rust: what a reader copies is compiled",
                    number + 1
                );
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
