//! The tree of an expression for evaluation: reads a text, hands on what the evaluator's parser makes of it.
//!
//! That parser takes any number of signs in a row for one, where cel-go takes an even number for none
//! (`cel-go/parser/parser.go`, `VisitLogicalNot` and `VisitNegate`).

use std::borrow::Cow;

use kube_cel::cel::{
    common::ast::IdedExpr,
    parser::{ParseErrors, Parser},
};

use crate::token::{Token, words};

/// The tree of an expression.
///
/// ```
/// use kube_cel::cel::common::ast::Expr;
///
/// assert!(matches!(kctl_cel::read("!!a").unwrap().expr, Expr::Ident(_)));
/// assert!(matches!(kctl_cel::read("!!!a").unwrap().expr, Expr::Call(_)));
/// ```
///
/// # Errors
/// It is no CEL.
pub fn read(expression: &str) -> Result<IdedExpr, ParseErrors> {
    read_by(expression, |text| Parser::default().enable_optional_syntax(true).parse(text))
}

/// The same of one that may be so deep: on a stack that has room for it.
///
/// # Errors
/// It is no CEL, or deeper.
pub fn read_within(expression: &str, depth_max: u16) -> Result<IdedExpr, ParseErrors> {
    read_by(expression, |text| {
        Parser::default().enable_optional_syntax(true).max_recursion_depth(depth_max).parse(text)
    })
}

fn read_by(expression: &str, parse: impl Fn(&str) -> Result<IdedExpr, ParseErrors>) -> Result<IdedExpr, ParseErrors> {
    // What is wrong is told about the text as it is written.
    match (parse(expression), without_pairs(expression)) {
        (Ok(_), Cow::Owned(text)) => parse(&text),
        (read, _) => read,
    }
}

/// The text with blanks for signs that undo one another.
fn without_pairs(text: &str) -> Cow<'_, str> {
    let Some(words) = words(text).filter(|_| text.contains(['!', '-'])) else { return text.into() };
    let mut blanks: Vec<usize> = Vec::new();
    let mut next = 0;
    while let Some((at, word)) = words.get(next) {
        let begin = next;
        next += 1;
        let &Token::Sign(sign @ ("!" | "-")) = word else { continue };
        // Between two values it is a minus, and no sign.
        if sign == "-" && begin.checked_sub(1).is_some_and(|before| ends_value(&words[before].1)) {
            continue;
        }
        let n_signs = words[begin..].iter().take_while(|(_, word)| *word == Token::Sign(sign)).count();
        next = begin + n_signs;
        if n_signs % 2 == 0 {
            debug_assert!(words[begin].0 == *at, "signs are blanked where they stand");
            blanks.extend(words[begin..next].iter().map(|(at, _)| at));
        }
    }
    if blanks.is_empty() {
        return text.into();
    }
    let mut blanks = blanks.into_iter().peekable();
    text.chars().enumerate().map(|(at, letter)| if blanks.next_if_eq(&at).is_some() { ' ' } else { letter }).collect()
}

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
    fn an_even_number_of_signs_is_none() {
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
