//! Parses an expression with the evaluator's parser, after removing pairs of `!` and `-`.
//!
//! That parser reads several of these operators in a row as one, whereas in cel-go an even number has no effect
//! (`cel-go/parser/parser.go`, `VisitLogicalNot` and `VisitNegate`).

use std::borrow::Cow;

use kube_cel::cel::{
    common::ast::IdedExpr,
    parser::{ParseErrors, Parser},
};

use crate::lexer::{Token, tokens};

/// Parses an expression for evaluation by `kube-cel`, or for [`estimate`](crate::estimate).
///
/// The parser recurses as deep as `kube-cel` does by default; use [`read_within`] for deep expressions. Optional syntax
/// (`a.?b`, `a[?0]`, `[?x]`) is on, as on API servers.
///
/// ```
/// use kube_cel::cel::common::ast::Expr;
///
/// assert!(matches!(kctl_cel::read("!!a").unwrap().expr, Expr::Ident(_)));
/// assert!(matches!(kctl_cel::read("!!!a").unwrap().expr, Expr::Call(_)));
/// ```
///
/// # Errors
/// The expression is not valid CEL. Messages and positions refer to it as it was passed.
pub fn read(expression: &str) -> Result<IdedExpr, ParseErrors> {
    read_by(expression, |text| Parser::default().enable_optional_syntax(true).parse(text))
}

/// Parses an expression of at most `depth_max` nested levels.
///
/// Call it inside [`with_large_stack`](crate::with_large_stack()), which provides a large enough stack.
///
/// ```
/// let deep = format!("{}1{}", "(".repeat(200), ")".repeat(200));
/// assert!(kctl_cel::with_large_stack(1_000, || kctl_cel::read_within(&deep, 1_000).is_ok()));
/// assert!(kctl_cel::read_within(&deep, 50).is_err());
/// ```
///
/// # Errors
/// The expression is not valid CEL, or deeper.
pub fn read_within(expression: &str, depth_max: u16) -> Result<IdedExpr, ParseErrors> {
    read_by(expression, |text| {
        Parser::default().enable_optional_syntax(true).max_recursion_depth(depth_max).parse(text)
    })
}

/// Parses an expression as it is. If it has pairs, also parses it without them.
fn read_by(expression: &str, parse: impl Fn(&str) -> Result<IdedExpr, ParseErrors>) -> Result<IdedExpr, ParseErrors> {
    // If the first parse fails, its error is returned, because its positions refer to the original expression.
    match (parse(expression), without_pairs(expression)) {
        (Ok(_), Cow::Owned(text)) => parse(&text),
        (read, _) => read,
    }
}

/// Replaces pairs of operators that cancel out by blanks, so that positions do not change.
fn without_pairs(text: &str) -> Cow<'_, str> {
    let Some(tokens) = tokens(text).filter(|_| text.contains(['!', '-'])) else { return text.into() };
    let mut blanks: Vec<usize> = Vec::new();
    let mut next = 0;
    while let Some((at, word)) = tokens.get(next) {
        let begin = next;
        next += 1;
        let &Token::Sign(sign @ ("!" | "-")) = word else { continue };
        // Between two operands it is a subtraction.
        if sign == "-" && begin.checked_sub(1).is_some_and(|before| ends_value(&tokens[before].1)) {
            continue;
        }
        let n_signs = tokens[begin..].iter().take_while(|(_, word)| *word == Token::Sign(sign)).count();
        next = begin + n_signs;
        if n_signs % 2 == 0 {
            debug_assert!(tokens[begin].0 == *at, "`begin` is the index of this token");
            blanks.extend(tokens[begin..next].iter().map(|(at, _)| at));
        }
    }
    if blanks.is_empty() {
        return text.into();
    }
    let mut blanks = blanks.into_iter().peekable();
    text.chars().enumerate().map(|(at, letter)| if blanks.next_if_eq(&at).is_some() { ' ' } else { letter }).collect()
}

/// Returns `true` if an operand ends with this token, so that a `-` after it is a subtraction.
fn ends_value(word: &Token) -> bool {
    match word {
        Token::Name(name) => name != "in",
        Token::Sign(sign) => matches!(*sign, ")" | "]" | "}"),
        Token::End => false,
        Token::Quoted(_) | Token::Int(_) | Token::Uint(_) | Token::Double(_) | Token::Text(_) | Token::Bytes(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(without_pairs(text), expected);
    }

    #[test]
    fn even_number_of_operators_cancels_out() {
        check("!!true", "  true");
        check("!!!true", "!!!true");
        check("! !a && - -1 == --b", "   a &&    1 ==   b");
        check("1 - -1", "1 - -1");
        check("1 - --1 - a---b", "1 -   1 - a-  b");
        check("'!!' + r'--' // !!", "'!!' + r'--' // !!");
        check("f(--1)[--1]--1", "f(  1)[  1]--1");
        check("1 in --a", "1 in   a");
        check("'é' == !!b", "'é' ==   b");
    }
}
