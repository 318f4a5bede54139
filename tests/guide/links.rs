//! Links between pages point to files and headings that exist, and every page is in the table of contents.

use std::{
    collections::BTreeSet,
    fs,
    path::{Component, Path, PathBuf},
};

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the pages for readers: those at the root of the repository, in `docs`, and the book.
pub(crate) fn pages() -> Vec<PathBuf> {
    let folders = ["", "docs", "docs/decisions", "guide", "guide/recipes"].map(|folder| root().join(folder));
    let files = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    files.filter(|file| file.extension().is_some_and(|extension| extension == "md")).collect()
}

/// Returns the targets of a page's Markdown links outside of code.
fn links(text: &str) -> Vec<&str> {
    let mut in_code = false;
    let mut links = Vec::new();
    for line in text.lines() {
        in_code ^= line.trim_start().starts_with("```");
        if !in_code {
            links.extend(line.split("](").skip(1).filter_map(|rest| rest.split(')').next()));
        }
    }
    links
}

/// Returns the fragment that GitHub and mdBook generate for a heading.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

/// Returns the URL below which GitHub shows the files of this repository. `Cargo.toml` has its address.
fn files_on_github() -> String {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let address = manifest.lines().find_map(|line| line.strip_prefix("repository = \"")?.strip_suffix('"')).unwrap();
    format!("{address}/blob/main/")
}

#[test]
fn links_lead_to_files_and_headings() {
    let on_github = files_on_github();
    let (mut n_links, mut broken) = (0, Vec::new());
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for link in links(&text) {
            let (folder, path) = match link.strip_prefix(&on_github) {
                Some(path) => (root(), path),
                None if link.contains("://") => continue,
                None => (page.parent().unwrap().to_owned(), link),
            };
            n_links += 1;
            let (file, heading) = path.split_once('#').unwrap_or((path, ""));
            let target = if file.is_empty() { page.clone() } else { folder.join(file) };
            let exists = target.exists()
                && (heading.is_empty()
                    || fs::read_to_string(&target)
                        .unwrap()
                        .lines()
                        .any(|line| line.starts_with('#') && anchor(line) == heading));
            if !exists {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(n_links > 50, "only {n_links} links were found");
}

/// crates.io and docs.rs show the READMEs of packages, where a path from the root of the repository leads nowhere.
#[test]
fn readmes_of_packages_have_absolute_links() {
    let on_github = files_on_github();
    let folders = fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path());
    let mut readmes: Vec<PathBuf> =
        folders.map(|folder| folder.join("README.md")).filter(|file| file.exists()).collect();
    readmes.retain(|file| file.parent().unwrap().file_name().unwrap().to_string_lossy().starts_with("kctl"));
    assert!(readmes.len() > 8, "{readmes:?}");
    readmes.push(root().join("README.md"));
    let mut relative = Vec::new();
    for readme in readmes {
        let text = fs::read_to_string(&readme).unwrap();
        let links = links(&text).into_iter().filter(|link| !link.contains("://") && !link.starts_with('#'));
        relative.extend(links.map(|link| format!("{}: write {on_github}{link}", readme.display())));
    }
    assert!(relative.is_empty(), "{}", relative.join("\n"));
}

/// Returns `true` if a link on a page leads out of the book. The path of the page is relative to `guide`.
fn leaves_the_book(page: &Path, link: &str) -> bool {
    let n_up = Path::new(link).components().take_while(|part| *part == Component::ParentDir).count();
    !link.contains("://") && n_up >= page.components().count()
}

/// The built book has only the pages in `guide`. A file elsewhere is linked on GitHub.
#[test]
fn links_of_the_book_lead_into_the_book() {
    let (guide, on_github) = (root().join("guide"), files_on_github());
    let (mut n_pages, mut outside) = (0, Vec::new());
    for page in pages() {
        let Ok(relative) = page.strip_prefix(&guide) else { continue };
        n_pages += 1;
        let text = fs::read_to_string(&page).unwrap();
        let found = links(&text).into_iter().filter(|link| leaves_the_book(relative, link));
        outside.extend(found.map(|link| format!("{}: {link}", page.display())));
    }
    assert!(n_pages > 30, "{n_pages} pages");
    assert!(outside.is_empty(), "begin the links with {on_github}:\n{}", outside.join("\n"));
}

#[test]
fn depth_of_a_page_counts_for_links() {
    let cases = [("a.md", "b.md", false), ("a.md", "../b.md", true), ("recipes/a.md", "../b.md", false)];
    for (page, link, expected) in cases {
        assert_eq!(leaves_the_book(Path::new(page), link), expected, "{page}: {link}");
    }
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let summary = fs::read_to_string(root().join("guide/SUMMARY.md")).unwrap();
    let listed = links(&summary);
    let guide = root().join("guide");
    let pages = pages().into_iter().filter_map(|page| Some(page.strip_prefix(&guide).ok()?.to_str()?.to_owned()));
    let missing: Vec<String> = pages.filter(|page| page != "SUMMARY.md" && !listed.contains(&page.as_str())).collect();
    assert!(missing.is_empty(), "not in SUMMARY.md: {missing:?}");
}

/// Collects the Rust files of the workspace, as paths relative to its root.
pub(crate) fn rust_files(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && name != ".git" {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(format!("/{}", path.strip_prefix(root()).unwrap().display()));
        }
    }
}

#[test]
fn files_that_the_design_pages_name_exist() {
    let mut files = Vec::new();
    rust_files(&root(), &mut files);
    let design = ["", "docs", "docs/decisions"].map(|folder| root().join(folder));
    let folder_pages =
        ["benches", "tests/conformance", "tests/envtest", "tests/loop"].map(|folder| root().join(folder));
    let folder_pages =
        folder_pages.iter().flat_map(|folder| fs::read_dir(folder).unwrap()).map(|file| file.unwrap().path());
    let folder_pages = folder_pages.filter(|file| file.extension().is_some_and(|extension| extension == "md"));
    let (mut n_names, mut missing) = (0, Vec::new());
    // docs/renames.md names files that no longer exist.
    let is_design = |page: &PathBuf| {
        design.iter().any(|folder| page.parent() == Some(folder)) && !page.ends_with("docs/renames.md")
    };
    for page in pages().into_iter().filter(is_design).chain(folder_pages) {
        let text = fs::read_to_string(&page).unwrap();
        for name in text
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|name| Path::new(name).extension().is_some_and(|extension| extension == "rs"))
        {
            n_names += 1;
            if !files.iter().any(|file| file.ends_with(&format!("/{name}"))) {
                missing.push(format!("{}: {name}", page.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert!(n_names > 50, "only {n_names} names were found");
}

/// Returns the names in the first column of a section's tables.
fn rows(section: &str) -> impl Iterator<Item = &str> {
    let cells = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once(" | ").map(|(cell, _)| cell));
    cells.flat_map(|cell| cell.split('`').step_by(2)).filter(|name| !name.is_empty())
}

#[test]
fn table_of_modules_has_each_module() {
    let page = fs::read_to_string(root().join("docs/modules.md")).unwrap();
    let mut n_modules = 0;
    for section in page.split("\n## ").skip(1) {
        let (heading, tables) = section.split_once('\n').unwrap();
        let krate = heading.split([':', ' ']).next().unwrap();
        let within = heading.split('`').nth(1).unwrap_or_default();
        let folder = fs::read_dir(root().join(krate).join("src").join(within)).unwrap();
        let paths = folder.map(|entry| entry.unwrap().path());
        let paths = paths.filter(|path| path.is_dir() || path.extension().is_some_and(|extension| extension == "rs"));
        let names = paths.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned());
        let is_row = |name: &String| !["lib", "main", "mod", "tests"].contains(&name.as_str());
        // Some modules are a file and a folder.
        let expected: BTreeSet<String> = names.filter(is_row).collect();
        let found: Vec<&str> = tables.split("\n### ").flat_map(rows).collect();
        n_modules += expected.len();
        // A row may name the modules that serve it.
        let missing: Vec<_> = expected.iter().filter(|name| !tables.contains(&format!("`{name}`"))).collect();
        let surplus: Vec<_> = found.iter().filter(|name| !expected.contains(**name)).collect();
        assert!(
            missing.is_empty() && surplus.is_empty(),
            "{heading}: not in the table {missing:?}; no module {surplus:?}"
        );
    }
    assert!(n_modules > 100, "{n_modules} modules");
}
