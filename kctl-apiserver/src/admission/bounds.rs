//! How large an expression of CEL may be: the parser and the evaluator recurse, and a stack that overflows ends the process.

/// Brackets within brackets.
const NESTING_MAX: usize = 16;
/// Operators outside of texts, each of which may be one level of the tree; and as many dots in a row, as in `a.b.c`.
const OPERATORS_MAX: usize = 100;
/// Longest expression.
const EXPRESSION_LEN_MAX: usize = 20_000;

/// Why an expression is not even parsed.
pub(crate) fn beyond(expression: &str) -> Option<String> {
    if expression.len() > EXPRESSION_LEN_MAX {
        return Some(format!("expression has {} bytes, at most {EXPRESSION_LEN_MAX} are read", expression.len()));
    }
    let (mut nesting, mut deepest, mut n_operators, mut n_dots) = (0_usize, 0, 0, 0);
    let mut quote = None;
    let mut letters = expression.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(_), '\\') => drop(letters.next()),
            (Some(open), letter) if open == letter => quote = None,
            (None, '\'' | '"') => quote = Some(letter),
            (None, '(' | '[' | '{') => {
                nesting += 1;
                deepest = deepest.max(nesting);
            }
            (None, ')' | ']' | '}') => nesting = nesting.saturating_sub(1),
            (None, '+' | '-' | '*' | '/' | '%' | '!' | '?' | '<' | '>' | '=' | '&' | '|') => n_operators += 1,
            (None, '.') => {
                n_dots += 1;
                n_operators = n_operators.max(n_dots);
            }
            (None, ' ' | ',' | '\n') => n_dots = 0,
            _ => {}
        }
    }
    if deepest > NESTING_MAX {
        return Some(format!("expression is nested {deepest} deep, at most {NESTING_MAX} are read"));
    }
    let many = format!("expression has {n_operators} operators, at most {OPERATORS_MAX} are read");
    (n_operators > OPERATORS_MAX).then_some(many)
}

#[cfg(test)]
mod tests {
    use super::super::conditions::{Cel, Scope};

    fn check(expression: &str, expected: Result<Cel, &str>) {
        let said = Scope::new([]).evaluate(expression);
        let shown: String = expression.chars().take(40).collect();
        match (said, expected) {
            (Ok(said), Ok(expected)) => assert_eq!(said, expected, "{shown}"),
            (Err(why), Err(part)) => assert!(why.contains(part), "{shown}: {why}"),
            (said, expected) => panic!("{shown}: {said:?}, not {expected:?}"),
        }
    }

    #[test]
    fn expressions_at_the_bounds_are_evaluated_and_those_over_them_are_refused() {
        let nested = |depth: usize| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
        check(&nested(16), Ok(Cel::Int(1)));
        check(&nested(17), Err("nested 17 deep"));
        check(&"[".repeat(20_000), Err("nested 20000 deep"));
        let sum = |n_operators: usize| format!("1{}", "+1".repeat(n_operators));
        check(&sum(100), Ok(Cel::Int(101)));
        check(&sum(101), Err("101 operators"));
        check(&"!".repeat(101), Err("101 operators"));
        check(&format!("{{}}{}", ".a".repeat(100)), Err("no such key"));
        check(&format!("{{}}{}", ".a".repeat(101)), Err("101 operators"));
        check(&format!("'{}' == ''", "(+".repeat(5_000)), Ok(Cel::Bool(false)));
        check(&" ".repeat(20_001), Err("20001 bytes"));
    }
}
