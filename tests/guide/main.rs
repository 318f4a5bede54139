//! The code of the guide is what readers copy: it compiles as it is shown.
//!
//! The blocks of the tutorial are one program, which stands here as a module; those of the other pages are each a program of
//! its own, and doc tests of `kctl`. rustdoc hides lines that begin with `# `, GitHub shows them: there are none.

use std::{fs, path::Path};

mod simulation;
mod tutorial;

fn guide() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let files = fs::read_dir(folder.join("guide")).unwrap().map(|entry| entry.unwrap().path());
    let pages = files.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    let all = pages.chain([folder.join("README.md")]);
    let text = |path: &Path| fs::read_to_string(path).unwrap();
    all.map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), text(&path))).collect()
}

/// The Rust blocks of a page.
fn blocks(text: &str) -> Vec<String> {
    let parts = text.split("```").skip(1).step_by(2);
    parts
        .filter_map(|block| block.strip_prefix("rust").and_then(|code| code.split_once('\n')))
        .map(|(_, code)| code.into())
        .collect()
}

#[test]
fn no_block_has_lines_that_github_shows_and_rustdoc_hides() {
    let pages = guide();
    assert!(pages.len() > 7, "{}", pages.len());
    for (page, text) in pages {
        for line in blocks(&text).iter().flat_map(|code| code.lines()) {
            let line = line.trim_start();
            assert!(line != "#" && !line.starts_with("# "), "{page}: {line}");
        }
    }
}

#[test]
fn modules_here_are_the_blocks_of_their_pages() {
    let pages = guide();
    let page = |name: &str| &pages.iter().find(|(page, _)| page == name).unwrap().1;
    let tutorial = blocks(page("tutorial.md")).join("\n");
    let simulation = blocks(page("simulation.md"))[0].clone();
    for (name, code, shown) in
        [("tutorial", include_str!("tutorial.rs"), tutorial), ("simulation", include_str!("simulation.rs"), simulation)]
    {
        let code =
            code.lines().skip_while(|line| line.starts_with("//!") || line.starts_with("#![")).collect::<Vec<_>>();
        assert_eq!(code.join("\n").trim(), shown.trim(), "tests/guide/{name}.rs is not the code of guide/{name}.md");
    }
}
