//! Signs that cancel each other out: reads an expression, hands on one without them.

use crate::token::{Token, words};

/// The expression with blanks for signs that cancel each other out, as in `!!a` and `--a`, which upstream never makes calls of
/// (`VisitLogicalNot` and `VisitNegate` of `cel-go/parser/parser.go`); none where there are no such signs. Places stay what they are.
///
/// ```
/// assert_eq!(kctl_cel::without_double_signs("!!a && 1 - --b > ---c").unwrap(), "  a && 1 -   b >   -c");
/// assert_eq!(kctl_cel::without_double_signs("!a && 1 - -b == '--'"), None);
/// ```
pub fn without_double_signs(expression: &str) -> Option<String> {
    let words = words(expression)?;
    let mut letters: Vec<char> = expression.chars().collect();
    let (mut index, mut is_changed) = (0, false);
    while index < words.len() {
        let Token::Sign(sign @ ("!" | "-")) = words[index].1 else {
            index += 1;
            continue;
        };
        let run_len = words[index..].iter().take_while(|(_, token)| *token == Token::Sign(sign)).count();
        // The first minus after a value is between two values.
        let is_between = sign == "-" && index > 0 && ends_value(&words[index - 1].1);
        let first = index + usize::from(is_between);
        index += run_len;
        for (at, _) in &words[first..index - (index - first) % 2] {
            letters[*at] = ' ';
            is_changed = true;
        }
    }
    is_changed.then(|| letters.into_iter().collect())
}

fn ends_value(token: &Token) -> bool {
    match token {
        Token::Name(name) => name != "in",
        Token::Sign(sign) => [")", "]", "}"].contains(sign),
        Token::End => false,
        Token::Quoted(_) | Token::Int | Token::Uint | Token::Double | Token::Text(_) | Token::Bytes => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expression: &str, expected: &str) {
        let found = without_double_signs(expression).unwrap_or_else(|| expression.to_owned());
        assert_eq!(found, expected, "{expression}");
    }

    #[test]
    fn an_even_number_of_signs_is_none() {
        check("! !a", "   a");
        check("!!!a", "  !a");
        check("!!has(self.a) && !!!!b", "  has(self.a) &&     b");
        check("--1", "  1");
        check("a - -1", "a - -1");
        check("a--1", "a--1");
        check("a---1", "a-  1");
        check("(a)---1", "(a)-  1");
        check("1 in --a", "1 in   a");
        check("'!!' != r'--' // !!", "'!!' != r'--' // !!");
    }
}
