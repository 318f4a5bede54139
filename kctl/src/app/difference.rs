//! Differences between generated files and the files of a folder, for the errors of `--check`.

/// Maximum number of characters of a line that an error shows.
const LINE_LEN_MAX: usize = 100;
/// Number of equal characters before the difference that are shown of a long line.
const CONTEXT_LEN: usize = 40;
/// Maximum number of files whose first different line is shown. All files are listed.
const LINES_MAX: usize = 20;

/// A file that is not what a command generates.
pub(super) struct Difference {
    /// The path, with the reason if the file is missing or can't be read.
    file: String,
    /// The first line that differs; `None` if there is no such line to show.
    line: Option<String>,
}

impl Difference {
    /// Returns a difference without a line. `file` is the path, with the reason if the file can't be compared.
    pub(super) fn without_line(file: String) -> Self {
        Self { file, line: None }
    }

    /// Returns the difference of a file from the generated string, with the first line that differs.
    pub(super) fn new(file: String, expected: &str, found: &str) -> Self {
        let line = first_difference(expected, found).map(|line| format!("{file}:{line}"));
        Self { file, line }
    }
}

/// Returns the paths in one line, and below it the first different line of each file, of at most [`LINES_MAX`] files.
pub(super) fn describe(differences: &[Difference]) -> String {
    let files: Vec<&str> = differences.iter().map(|difference| difference.file.as_str()).collect();
    let lines = differences.iter().filter_map(|difference| difference.line.as_deref()).take(LINES_MAX);
    std::iter::once(files.join(", ")).chain(lines.map(|line| format!("  {line}"))).collect::<Vec<_>>().join("\n")
}

/// Returns the first line that differs, as `NUMBER: expected …, found …`. `None` for equal strings.
fn first_difference(expected: &str, found: &str) -> Option<String> {
    let (mut expected, mut found) = (expected.split_inclusive('\n'), found.split_inclusive('\n'));
    let mut number = 0;
    loop {
        number += 1;
        match (expected.next(), found.next()) {
            (None, None) => return None,
            (ours, theirs) if ours == theirs => {}
            (ours, theirs) => {
                let common = ours.unwrap_or_default().chars().zip(theirs.unwrap_or_default().chars());
                let n_equal = common.take_while(|(ours, theirs)| ours == theirs).count();
                return Some(format!("{number}: expected {}, found {}", show(ours, n_equal), show(theirs, n_equal)));
            }
        }
    }
}

/// Returns a line in quotes. A long line is cut to the part around the first character that differs, which comes after
/// `n_equal` equal characters.
fn show(line: Option<&str>, n_equal: usize) -> String {
    let Some(line) = line else { return "the end of the file".into() };
    let (text, end) = line.strip_suffix('\n').map_or((line, " without a line end"), |text| (text, ""));
    let n_characters = text.chars().count();
    let start = if n_characters > LINE_LEN_MAX { n_equal.saturating_sub(CONTEXT_LEN) } else { 0 };
    let shown: String = text.chars().skip(start).take(LINE_LEN_MAX).collect();
    let before = if start > 0 { "…" } else { "" };
    let after = if n_characters > start + LINE_LEN_MAX { "…" } else { "" };
    // A line end of Windows would not be visible.
    format!("`{before}{}{after}`{end}", shown.replace('\r', "\\r"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_different_line_is_named() {
        for (expected, found, difference) in [
            ("a\nb\n", "a\nb\n", None),
            ("", "", None),
            ("a\nb\nc\n", "a\nx\ny\n", Some("2: expected `b`, found `x`")),
            ("a\nb\n", "a\n", Some("2: expected `b`, found the end of the file")),
            ("a\n", "a\nb\n", Some("2: expected the end of the file, found `b`")),
            ("a\n", "a", Some("1: expected `a`, found `a` without a line end")),
            ("a\n", "a\r\n", Some("1: expected `a`, found `a\\r`")),
        ] {
            assert_eq!(first_difference(expected, found).as_deref(), difference, "{expected:?} {found:?}");
        }
    }

    #[test]
    fn long_lines_are_cut_around_the_difference() {
        let line = |middle: &str| format!("{}{middle}{}\n", "a".repeat(200), "b".repeat(200));
        let shown = first_difference(&line("x"), &line("y")).unwrap();
        let side = |middle: &str| format!("`…{}{middle}{}…`", "a".repeat(CONTEXT_LEN), "b".repeat(59));
        assert_eq!(shown, format!("1: expected {}, found {}", side("x"), side("y")));
        let exact = "a".repeat(LINE_LEN_MAX);
        assert_eq!(
            first_difference(&format!("{exact}\n"), "").unwrap(),
            format!("1: expected `{exact}`, found the end of the file")
        );
    }

    #[test]
    fn all_files_are_listed_and_some_lines() {
        let differs = |n: usize| Difference::new(format!("{n}.yaml"), "a\n", "b\n");
        let mut differences: Vec<_> = (0..=LINES_MAX).map(differs).collect();
        differences.push(Difference::without_line("gone.yaml (missing)".into()));
        let text = describe(&differences);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0].starts_with("0.yaml, 1.yaml, ") && lines[0].ends_with("20.yaml, gone.yaml (missing)"),
            "{text}"
        );
        assert_eq!((lines.len(), lines[1]), (1 + LINES_MAX, "  0.yaml:1: expected `a`, found `b`"));
    }
}
