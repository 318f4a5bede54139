//! Line ends of a chart's files: those with CRLF keep it, so that a run changes no lines but its own.

/// Returns generated text with the line ends of the file that it replaces or is added to.
///
/// The first line of the file decides. The generated text has LF alone.
pub(super) fn with_line_ends_of(file: &str, generated: &str) -> String {
    let is_crlf = file.split_inclusive('\n').next().is_some_and(|line| line.ends_with("\r\n"));
    if is_crlf { generated.replace('\n', "\r\n") } else { generated.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_line_decides_about_line_ends() {
        for (file, expected) in [("", "a\nb\n"), ("x", "a\nb\n"), ("x\ny\r\n", "a\nb\n"), ("x\r\ny\n", "a\r\nb\r\n")] {
            assert_eq!(with_line_ends_of(file, "a\nb\n"), expected, "{file:?}");
        }
    }
}
