//! `..` of numbers: gopher-lua formats them as `tostring` does, C with 14 digits.
//!
//! The source is rewritten so that `a .. b` becomes `a ..dots.. b`. The library's value `dots`
//! takes both operands, the right one first, and joins them. The precedence of operators and the
//! numbers of lines do not change.

use std::borrow::Cow;

use super::tokens::{Edit, apply, tokens};

/// The name that the library's operand has in the chunk; no script has it by chance.
pub(super) const DOTS: &str = "kctl_dots";

pub(super) fn rewrite(source: &str) -> Cow<'_, str> {
    if !source.contains("..") {
        return Cow::Borrowed(source);
    }
    let (mut edits, mut run): (Vec<Edit>, (usize, usize)) = (Vec::new(), (0, 0));
    for token in tokens(source).filter(|token| token.text == ".") {
        let goes_on = run.1 == token.start && run.0 < run.1;
        run = if goes_on { (run.0, token.end) } else { (token.start, token.end) };
        let is_last = !source[token.end..].starts_with('.');
        // Three dots alone are the varargs of a function; five are varargs before a `..`.
        if is_last && matches!(run.1 - run.0, 2 | 5) {
            // The spaces separate the operator from a number such as `.5`.
            edits.push((run.1, run.1, format!(" {DOTS} .. ")));
        }
    }
    if edits.is_empty() { Cow::Borrowed(source) } else { Cow::Owned(apply(source, edits)) }
}

#[cfg(test)]
mod tests {
    use super::rewrite;

    #[test]
    fn each_concatenation_gets_exactly_one_operand_between() {
        for (source, expected) in [
            ("x = a .. b..c", "x = a .. D ..  b.. D .. c"),
            ("x = a.. .5 ..'..'", "x = a.. D ..  .5 .. D .. '..'"),
            ("return ...", "return ..."),
            ("x = { ... } y = .....z", "x = { ... } y = ..... D .. z"),
            ("x = a.b.c -- ..", "x = a.b.c -- .."),
            ("x = [[..]] .. 1", "x = [[..]] .. D ..  1"),
            ("x = a ..\nb", "x = a .. D .. \nb"),
            ("x = 1..2", "x = 1..2"),
            ("..", ".. D .. "),
            ("....", "...."),
        ] {
            assert_eq!(rewrite(source).replace("kctl_dots", "D"), expected, "{source}");
        }
    }
}
