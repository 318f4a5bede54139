//! Plain English: phrases that readers had to decode must not occur in pages, comments and messages.
//!
//! CONTRIBUTING.md asks writers to avoid these patterns. They are searched in all Markdown, in the comments and in the
//! strings of all Rust files, including tests, examples and benchmarks, and in the comments of scripts, templates and
//! configuration. CHANGELOG.md has short bullets, so that a user finds a change at a glance. Each published crate has a
//! bound for how much of it is documentation.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use regex::Regex;

/// The folders with pages or Rust files.
const FOLDERS: [&str; 17] = [
    ".github",
    "benches",
    "docs",
    "examples",
    "guide",
    "kctl",
    "kctl-apimachinery",
    "kctl-apiserver",
    "kctl-cel",
    "kctl-cli",
    "kctl-interpreter",
    "kctl-macros",
    "kctl-runtime",
    "kctl-webhook",
    "kctl-workloads",
    "tests",
    "xtask",
];

/// Returns the folders of the published crates.
fn published_crates() -> impl Iterator<Item = &'static str> {
    FOLDERS.into_iter().filter(|name| name.starts_with("kctl"))
}

/// A phrase, its replacement, and the parts of a line that are not searched for it.
struct Pattern {
    phrase: Regex,
    except: Option<Regex>,
    instead: &'static str,
}

/// Returns the phrases. The sources of kube, tower, axum and tokio have nearly none of them.
fn patterns() -> Vec<Pattern> {
    let except = |phrase: &str, except: &str, instead| Pattern {
        phrase: Regex::new(phrase).unwrap(),
        except: (!except.is_empty()).then(|| Regex::new(except).unwrap()),
        instead,
    };
    let pattern = |phrase: &str, instead| except(phrase, "", instead);
    vec![
        except(
            r"^(What|Who|Whoever|Whom|Whose|Whether|Of (which|what|these|those))\b",
            r"^.*\?$|^What's",
            "name the subject",
        ),
        pattern(r"\b(is|are|was|were) none\b", "say `None`, `not a …` or `no …`"),
        except(
            r"\b(is|are|was|were) no [a-zA-Z]+",
            r"\bno (longer|more|need|way|reason|guarantee|such|different|other)|\b[Tt]here (is|are|was|were) no\b",
            "say `is not a …`, or `there is no …` of the thing itself",
        ),
        pattern(r"\b(nobody|whoever|somebody|whom)\b", "name who: the caller, the client, the user, no controller"),
        pattern(r"\b(is|are|was|be) told\b|\btells? of\b|\btold of\b", "code returns, reports, logs or records"),
        pattern(r"\b(says?|said) of\b|\bis said\b", "code returns, reports, logs or records"),
        pattern(r"\bof (its|their|one's|his) own\b", "`its own …`"),
        pattern(r"\b[Aa] text\b|\btexts\b|\bsigns of\b", "string, message, character"),
        pattern(r"(?i)\b(those|that) of\b", "repeat the noun, or write `the object's …`"),
        pattern(r"(?i)\bstay(s|ed)?\b", "`is kept`, `remains`, `is unchanged`"),
        pattern(r"(?i)\bbeside\b", "`next to`, `in addition to`, `concurrently with`"),
        pattern(r"(?i)\b(by|of) which\b", "two sentences, or `that … uses to`"),
        pattern(r"(?i)\banother one\b", "another what"),
        pattern(r"(?i)\b(go|goes|going|went) on\b", "continue, or must be applied to"),
        pattern(r"(?i)\bmeanwhile\b", "in between, or during what"),
        except(r"(?i)\bstands?\b", r"\bstands? in for\b", "is, or represents"),
        pattern(r"(?i)\bfor ever\b", "indefinitely"),
        pattern(r"(?i)\banew\b", "again"),
        pattern(r"(?i)\bin question\b", "which one"),
    ]
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the files below `folder` with this extension, except build outputs and recorded data.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !["target", ".git", "data"].contains(&name.as_str()) {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns the prose of a Markdown page: number and text of each line, without code and table rulers.
fn markdown(text: &str) -> Vec<(usize, String)> {
    let mut in_code = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code && !line.starts_with("    ") {
            lines.push((index + 1, line.trim_start_matches(['#', '>', '*', '-', '|', ' ']).to_owned()));
        }
    }
    lines
}

/// Returns the comments of a Rust file, without examples.
fn comments(text: &str) -> Vec<(usize, String)> {
    let mut in_code = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let Some(comment) = line.trim_start().strip_prefix("//") else {
            in_code = false;
            continue;
        };
        let comment = comment.trim_start_matches(['/', '!']).trim();
        if comment.starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            lines.push((index + 1, comment.to_owned()));
        }
    }
    lines
}

static STRING: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#""((?:[^"\\]|\\.)*)""#).unwrap());
static PLACEHOLDER: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\{[^}]*\}").unwrap());

/// Returns the code of a Rust file without comments. The lines of a string that continues with a backslash are one.
fn code_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut is_continued = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let begin = line.strip_suffix('\\');
        let code = begin.unwrap_or(line);
        match lines.last_mut().filter(|_| is_continued) {
            Some((_, last)) => last.push_str(code),
            None if line.starts_with("//") => continue,
            None => lines.push((index + 1, code.to_owned())),
        }
        is_continued = begin.is_some();
    }
    lines
}

/// Returns the strings of a Rust file that have a space, and so may be messages, without their placeholders.
fn strings(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in code_lines(text) {
        for string in STRING.captures_iter(&line) {
            let message = PLACEHOLDER.replace_all(&string[1], "X");
            if message.contains(' ') {
                found.push((number, message.into_owned()));
            }
        }
    }
    found
}

/// A comment of a script, a template or a configuration file, or the description of a package.
static OTHER_COMMENT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"(?:^|\s)(?:(?:#+|//+!?|--|/\*+)\s|"""|description = ")\s*(.+)$"#).unwrap());

/// Returns the comments, docstrings and package descriptions of a file that is neither Rust nor Markdown.
fn other_comments(text: &str) -> Vec<(usize, String)> {
    let mut in_docstring = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let comment = OTHER_COMMENT.captures(line).map(|found| found.get(1).unwrap().as_str());
        let prose = if in_docstring { Some(line.trim()) } else { comment };
        lines.extend(prose.map(|prose| (index + 1, prose.trim_start_matches(['-', ' ']).to_owned())));
        in_docstring ^= line.matches("\"\"\"").count() % 2 == 1;
    }
    lines
}

/// Removes code spans: they have names, not prose.
fn without_spans(lines: Vec<(usize, String)>) -> Vec<(usize, String)> {
    let prose = |line: String| line.split('`').step_by(2).collect::<Vec<_>>().join("`");
    lines.into_iter().map(|(number, line)| (number, prose(line))).collect()
}

fn odd(file: &Path, lines: Vec<(usize, String)>, patterns: &[Pattern]) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in lines {
        for pattern in patterns {
            let searched = pattern.except.as_ref().map(|except| except.replace_all(&line, ""));
            if pattern.phrase.is_match(searched.as_deref().unwrap_or(&line)) {
                found.push(format!("{}:{number}: {line}\n    help: {}", file.display(), pattern.instead));
            }
        }
    }
    found
}

/// Returns the files with this extension in all folders.
fn all_files(extension: &str) -> Vec<PathBuf> {
    FOLDERS.iter().flat_map(|folder| files(&root().join(folder), extension)).collect()
}

#[test]
fn pages_are_plain_english() {
    let patterns = patterns();
    let root_files = fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> =
        root_files.filter(|file| file.extension().is_some_and(|extension| extension == "md")).collect();
    assert!(pages.iter().any(|page| page.ends_with("CHANGELOG.md")), "{pages:?}");
    pages.extend(all_files("md"));
    assert!(pages.len() > 100, "{} pages", pages.len());
    let phrases = |page: &PathBuf| odd(page, without_spans(markdown(&fs::read_to_string(page).unwrap())), &patterns);
    let found: Vec<String> = pages.iter().flat_map(phrases).collect();
    assert!(found.is_empty(), "{} lines:\n{}", found.len(), found.join("\n"));
}

#[test]
fn comments_are_plain_english() {
    let patterns = patterns();
    let phrases = |file: &PathBuf| odd(file, without_spans(comments(&fs::read_to_string(file).unwrap())), &patterns);
    let found: Vec<String> = all_files("rs").iter().flat_map(phrases).collect();
    assert!(found.is_empty(), "{} lines:\n{}", found.len(), found.join("\n"));
}

/// Extensions of files with comments, except Rust and Markdown.
const OTHER_EXTENSIONS: [&str; 12] =
    ["css", "go", "java", "js", "lua", "mod", "py", "sh", "toml", "tpl", "yaml", "yml"];

/// Adds the files with [`OTHER_EXTENSIONS`] below `folder`, and scripts without an extension. Recorded data is JSON.
fn add_other_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !path.ends_with("target") {
                add_other_files(&path, found);
            }
            continue;
        }
        let is_other = match path.extension() {
            Some(extension) => extension.to_str().is_some_and(|extension| OTHER_EXTENSIONS.contains(&extension)),
            None => fs::read(&path).unwrap().starts_with(b"#!"),
        };
        if is_other {
            found.push(path);
        }
    }
}

#[test]
fn comments_of_other_files_are_plain_english() {
    let mut files = Vec::new();
    for folder in FOLDERS.into_iter().chain([".cargo", ".ci"]) {
        add_other_files(&root().join(folder), &mut files);
    }
    let root_files = fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path());
    files.extend(root_files.filter(|file| file.extension().is_some_and(|extension| extension == "toml")));
    files.sort();
    assert!(files.len() > 400, "{} files", files.len());
    let patterns = patterns();
    let mut found = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        let is_page = file.file_name().is_some_and(|name| name == "README.md.tpl");
        let lines = if is_page { markdown(&text) } else { other_comments(&text) };
        found.extend(odd(file, without_spans(lines), &patterns));
    }
    assert!(found.is_empty(), "{} lines:\n{}", found.len(), found.join("\n"));
}

#[test]
fn phrases_in_other_comments_are_found() {
    let text = "#!/bin/sh\n# It stays.\nkey: value # the size is that of `a`\nstays: 1\n  -- It goes on.\n\
                {{- /* another one */}}\ndescription = \"a queue of its own\"\nurl: https://stays.example\n\
                \"\"\"Returns\nnobody.\"\"\"\nstays\n";
    let found = odd(Path::new("file"), without_spans(other_comments(text)), &patterns());
    let lines: Vec<&str> = found.iter().map(|one| one.split(':').nth(1).unwrap()).collect();
    assert_eq!(lines, ["2", "3", "5", "6", "7", "10"], "{found:?}");
}

/// Files with strings that have such a phrase, and why.
const STRINGS_ALLOWED: [(&str, &str); 2] = [
    ("kctl-runtime/src/manager/metrics/mod.rs", "controller-runtime's description of a metric"),
    ("tests/guide/prose.rs", "examples of the phrases"),
];

#[test]
fn messages_are_plain_english() {
    let patterns = patterns();
    let mut found = Vec::new();
    for file in all_files("rs") {
        let phrases = odd(&file, without_spans(strings(&fs::read_to_string(&file).unwrap())), &patterns);
        let is_allowed = STRINGS_ALLOWED.iter().any(|(allowed, _)| file.ends_with(allowed));
        assert!(!is_allowed || !phrases.is_empty(), "remove {} from `STRINGS_ALLOWED`", file.display());
        found.extend(phrases.into_iter().filter(|_| !is_allowed));
    }
    assert!(found.is_empty(), "{} lines:\n{}", found.len(), found.join("\n"));
}

#[test]
fn phrases_in_code_are_not_prose() {
    let text = "//! The file stays.\nlet stays = 1; // It goes on.\n    // Beside `stays`, `another one`.\n\
                /// ```\n/// // for ever\n/// ```\n/// The size is that of `a`.\n";
    let found = odd(Path::new("file.rs"), without_spans(comments(text)), &patterns());
    let lines: Vec<&str> = found.iter().map(|one| one.split(':').nth(1).unwrap()).collect();
    assert_eq!(lines, ["1", "3", "7"], "{found:?}");
    let text = "// \"it stays so\"\nlet a = \"stays\";\nlet b = format!(\"{stays} is kept\", \"it \\\"stays\\\" \\\n  so\");\n";
    assert_eq!(strings(text), [(3, "X is kept".to_owned()), (3, r#"it \"stays\" so"#.to_owned())]);
    assert_eq!(odd(Path::new("file.rs"), strings(text), &patterns()).len(), 1);
}

/// Most lines of code per line of doc comments in each published crate. kube-rs, axum and tower have about two.
const CODE_PER_DOC_LINE_MAX: usize = 4;

/// Lines of doc comments and of code, without blank lines and plain comments.
#[derive(Debug, Default, PartialEq)]
struct Density {
    docs: usize,
    code: usize,
}

impl Density {
    /// Counts a file's lines up to its unit tests, which are last.
    fn add(&mut self, text: &str) {
        let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("#[cfg(test)]"));
        for line in lines {
            if line.starts_with("///") || line.starts_with("//!") {
                self.docs += 1;
            } else if !line.is_empty() && !line.starts_with("//") {
                self.code += 1;
            }
        }
    }

    fn of_crate(name: &str) -> Self {
        let folder = root().join(name);
        let is_test = |file: &PathBuf| {
            let path = file.strip_prefix(&folder).unwrap();
            path.components().any(|part| part.as_os_str().to_string_lossy().starts_with("tests"))
                || path.to_string_lossy().ends_with("tests.rs")
        };
        let mut density = Self::default();
        for file in files(&folder, "rs").iter().filter(|file| !is_test(file)) {
            density.add(&fs::read_to_string(file).unwrap());
        }
        density
    }
}

#[test]
fn published_crates_are_documented() {
    for name in published_crates() {
        let Density { docs, code } = Density::of_crate(name);
        assert!(code > 500, "{name}: {code} lines of code: the search has to follow the files");
        let missing = code.div_ceil(CODE_PER_DOC_LINE_MAX).saturating_sub(docs);
        assert!(missing == 0, "{name}: {docs} doc lines for {code} lines of code: document {missing} lines more");
    }
}

#[test]
fn plain_comments_and_unit_tests_are_not_documentation() {
    let mut density = Density::default();
    density.add("//! Page.\n\n/// Doc.\npub fn f() {\n    // Why.\n}\n\n#[cfg(test)]\nmod tests {\n    /// Doc.\n}\n");
    assert_eq!(density, Density { docs: 2, code: 2 });
}

/// Most words of a bullet in CHANGELOG.md. A longer one is two bullets.
const BULLET_WORDS_MAX: usize = 25;

/// Most lines of CHANGELOG.md for one version, with its heading.
const VERSION_LINES_MAX: usize = 80;

/// Returns the bullets of a page with more than [`BULLET_WORDS_MAX`] words. A bullet may continue in indented lines.
fn long_bullets(page: &str) -> Vec<String> {
    let mut bullets: Vec<String> = Vec::new();
    for line in page.lines() {
        if let Some(bullet) = line.strip_prefix("- ") {
            bullets.push(bullet.to_owned());
        } else if let (true, Some(bullet)) = (line.starts_with("  "), bullets.last_mut()) {
            bullet.push_str(line);
        }
    }
    bullets.retain(|bullet| bullet.split_whitespace().count() > BULLET_WORDS_MAX);
    bullets
}

#[test]
fn changelog_has_short_bullets_and_versions() {
    let page = fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    let long = long_bullets(&page);
    assert!(long.is_empty(), "say it in {BULLET_WORDS_MAX} words, or in two bullets: {long:#?}");
    let versions: Vec<&str> = page.split("\n## ").skip(1).collect();
    assert!(!versions.is_empty(), "no version: the search has to follow the headings");
    for version in versions {
        let (name, n_lines) = (version.lines().next().unwrap(), version.lines().count());
        assert!(n_lines <= VERSION_LINES_MAX, "{name}: {n_lines} lines; merge bullets");
    }
}

#[test]
fn bullets_of_too_many_words_are_found() {
    let short = ["word"; BULLET_WORDS_MAX].join(" ");
    assert_eq!(long_bullets(&format!("{short} more\n\n- {short}\n")), Vec::<String>::new());
    assert_eq!(long_bullets(&format!("- {short}\n  more\n- {short}\n")), [format!("{short}  more")]);
}

/// Most words of a page in docs/decisions: what a reader takes in at once.
const DECISION_WORDS_MAX: usize = 600;

#[test]
fn decisions_are_one_page_each() {
    let pages = files(&root().join("docs/decisions"), "md");
    assert!(pages.len() > 30, "{} decisions", pages.len());
    // Arrows and the rulers of tables are not words.
    let is_word = |word: &&str| word.contains(char::is_alphanumeric);
    let n_words = |page: &PathBuf| fs::read_to_string(page).unwrap().split_whitespace().filter(is_word).count();
    let long: Vec<_> = pages.iter().filter(|page| n_words(page) > DECISION_WORDS_MAX).collect();
    assert!(long.is_empty(), "split the decision, or shorten it to {DECISION_WORDS_MAX} words: {long:?}");
}

/// A line for each of [`patterns`], in their order, with and without an allowed phrase.
const PHRASES: [(&str, &str); 19] = [
    ("Whether a Pod runs", "What's new? Whether a Pod runs?"),
    ("the reason is none", "none is the reason"),
    ("there is no Pod, and it is no Node", "there is no Pod, and it is no longer a Node"),
    ("nobody waits", "no caller waits"),
    ("the caller tells of it", "the caller reports it"),
    ("it is said", "it is reported"),
    ("a queue of its own", "its own queue"),
    ("two texts", "the text"),
    ("the name is that of the Pod", "the Pod's name"),
    ("the Pod stays", "the Pod is kept"),
    ("Beside the Pod", "Besides, the Pod"),
    ("the name by which it is found", "the name which finds it"),
    ("choose another one", "choose another port"),
    ("the watch goes on", "the watch continues"),
    ("the Pod ends meanwhile", "the Pod ends"),
    ("it stands for a Pod, and stands in for a Node", "it stands in for a Node"),
    ("it waits for ever", "it waits"),
    ("it begins anew", "it begins again"),
    ("the Pod in question", "the question"),
];

#[test]
fn each_phrase_is_found() {
    let patterns = patterns();
    assert_eq!(patterns.len(), PHRASES.len());
    for (pattern, (wrong, right)) in patterns.into_iter().zip(PHRASES) {
        let lines = vec![(1, wrong.to_owned()), (2, right.to_owned())];
        let found = odd(Path::new("page.md"), lines, &[pattern]);
        assert!(found.len() == 1 && found[0].starts_with("page.md:1: "), "{wrong:?}, {right:?}: {found:?}");
    }
}

/// A crate without a line in [`FOLDERS`] would not be searched.
#[test]
fn folders_of_all_crates_are_searched() {
    let folders = fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path());
    let crates = folders.filter(|folder| folder.join("Cargo.toml").exists());
    let mut names: Vec<String> = crates.map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
    names.retain(|name| !FOLDERS.contains(&name.as_str()));
    assert!(names.is_empty(), "add these to `FOLDERS`: {names:?}");
}

#[test]
fn odd_phrases_are_found() {
    let page = markdown("# A page\n\nWhoever reads is told.\n\n```rust\n// nobody\n```\n\nA pod is no problem.\n");
    let found = odd(Path::new("page.md"), page, &patterns());
    assert_eq!(found.len(), 3, "{found:?}");
}
