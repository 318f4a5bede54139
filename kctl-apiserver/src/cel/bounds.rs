//! The size limits of a CEL expression. The parser and the evaluator recurse, and a stack overflow would end the
//! process. Measures the source before it is parsed.
//!
//! Upstream: `maxRecursionDepth` of `cel-go/parser/options.go`, for the parser and its visitor.

/// Maximum nesting of brackets and of conditional operators. Upstream counts the whole expression, too.
const NESTING_MAX: usize = 249;
/// Maximum depth of the tree in operators, dots and brackets: the depth of the longest sum that upstream parses.
const DEPTH_MAX: usize = 251;
/// The longest expression in bytes. Longer ones are rejected.
const EXPRESSION_LEN_MAX: usize = 20_000;

/// Returns the reason why an expression is not parsed, if it exceeds a limit.
///
/// Brackets and operators within string literals and comments are skipped.
pub(crate) fn exceeded_limit(expression: &str) -> Option<String> {
    if expression.len() > EXPRESSION_LEN_MAX {
        return Some(format!("expression has {} bytes, at most {EXPRESSION_LEN_MAX} are read", expression.len()));
    }
    let mut measure = Measure { open: vec![Brackets::default()], ..Measure::default() };
    let (mut rest, mut before) = (expression, ' ');
    while let Some(letter) = rest.chars().next() {
        match letter {
            '\'' | '"' => rest = after_string(before, rest),
            '/' if rest.starts_with("//") => rest = rest.find('\n').map_or("", |end| &rest[end..]),
            letter => {
                measure.read(before, letter);
                rest = &rest[letter.len_utf8()..];
            }
        }
        if !letter.is_whitespace() {
            before = letter;
        }
    }
    if measure.nesting_max > NESTING_MAX {
        return Some(format!("expression is nested more than {NESTING_MAX} deep"));
    }
    let depth = measure.open.iter().map(Brackets::depth).max().unwrap_or_default();
    (depth > DEPTH_MAX).then(|| format!("expression has more than {DEPTH_MAX} levels of operators"))
}

/// Returns the part of an expression after the string literal with which it begins. `before` is the letter before the
/// literal. After `r`, a literal has no escapes.
///
/// A line break ends a literal that is not in triple quotes. Such an expression is not valid, but the parser continues
/// after the error, so the rest has to be measured.
fn after_string(before: char, text: &str) -> &str {
    let quote = &text[..1];
    let triple = quote.repeat(3);
    let close = if text.starts_with(&triple) { &triple } else { quote };
    let (is_raw, mut is_escaped) = (matches!(before, 'r' | 'R'), false);
    for (at, letter) in text.char_indices().skip(close.len()) {
        if close == quote && letter == '\n' {
            return &text[at..];
        }
        if !is_escaped && text[at..].starts_with(close) {
            return &text[at + close.len()..];
        }
        is_escaped = letter == '\\' && !is_escaped && !is_raw;
    }
    ""
}

/// The depth of an expression as far as it was read.
#[derive(Default)]
struct Measure {
    /// The open brackets. Invariant: not empty, because the outermost level has no brackets.
    open: Vec<Brackets>,
    /// The number of open brackets and conditional operators. Falls when brackets close, and when an item of a list
    /// ends.
    nesting: usize,
    /// The highest value of `nesting` so far. Invariant: at least `nesting`.
    nesting_max: usize,
}

/// The expression within one pair of brackets.
#[derive(Default)]
struct Brackets {
    /// The number of conditional operators in the current item, which nest.
    n_conditions: usize,
    /// The number of operators since the last logical one: trees of logical operators are balanced.
    n_operators: usize,
    /// The depth of the deepest brackets since the last logical operator.
    below: usize,
    /// The depth of the deepest part before the last logical operator.
    deepest: usize,
}

impl Brackets {
    /// Returns the depth of the deepest part so far.
    fn depth(&self) -> usize {
        self.deepest.max(self.n_conditions + self.n_operators + self.below)
    }

    /// Starts a new part after a logical operator.
    fn end_part(&mut self) {
        self.deepest = self.depth();
        self.n_operators = 0;
        self.below = 0;
    }
}

impl Measure {
    /// Reads a character outside of strings. `before` is the previous character that is not blank. `?` after a dot, a
    /// bracket or a comma belongs to optional syntax and does not nest.
    fn read(&mut self, before: char, letter: char) {
        match letter {
            '(' | '[' | '{' => {
                self.open.push(Brackets::default());
                self.nest();
            }
            ')' | ']' | '}' if self.open.len() > 1 => {
                let Some(closed) = self.open.pop() else { return };
                self.nesting -= closed.n_conditions + 1;
                let depth = closed.depth() + 1;
                self.last(|level| level.below = level.below.max(depth));
            }
            '?' if !matches!(before, '.' | '[' | '{' | ',') => {
                self.nest();
                self.last(|level| level.n_conditions += 1);
            }
            '&' | '|' => self.last(Brackets::end_part),
            ',' => {
                let Some(level) = self.open.last_mut() else { return };
                level.end_part();
                self.nesting -= std::mem::take(&mut level.n_conditions);
            }
            '=' if matches!(before, '=' | '<' | '>') => {}
            // The parser turns several minus signs in a row into one operator or none.
            '-' if before == '-' => {}
            '.' | '+' | '-' | '*' | '/' | '%' | '<' | '>' | '=' => self.last(|level| level.n_operators += 1),
            _ => {}
        }
        debug_assert!(!self.open.is_empty(), "a closing bracket too many does not close the outermost level");
        debug_assert!(self.nesting + 1 >= self.open.len(), "each open bracket nests");
        debug_assert!(self.nesting <= self.nesting_max, "the deepest level is counted when it begins");
    }

    /// Enters a nested expression.
    fn nest(&mut self) {
        self.nesting += 1;
        self.nesting_max = self.nesting_max.max(self.nesting);
    }

    /// Changes the innermost level.
    fn last(&mut self, change: impl FnOnce(&mut Brackets)) {
        if let Some(level) = self.open.last_mut() {
            change(level);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::conditions::{Cel, Scope};

    const NESTED: Result<Cel, &str> = Err("nested more than 249 deep");
    const DEEP: Result<Cel, &str> = Err("more than 251 levels");

    fn check(expression: &str, expected: Result<Cel, &str>) {
        let result = Scope::new([]).evaluate(expression);
        let shown: String = expression.chars().take(40).collect();
        match (result, expected) {
            (Ok(result), Ok(expected)) => assert_eq!(result, expected, "{shown}"),
            (Err(why), Err(part)) => assert!(why.to_string().contains(part), "{shown}: {why}"),
            (result, expected) => panic!("{shown}: {result:?}, not {expected:?}"),
        }
    }

    #[test]
    fn expressions_at_limits_work_and_over_them_fail() {
        let nested = |depth: usize| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
        check(&nested(249), Ok(Cel::Int(1)));
        check(&nested(250), NESTED);
        check(&"[".repeat(20_000), NESTED);
        let conditions = |n: usize| format!("{}2", "false ? 1 : ".repeat(n));
        check(&conditions(249), Ok(Cel::Int(2)));
        check(&conditions(250), NESTED);
        let sum = |n_operators: usize| format!("1{}", "+1".repeat(n_operators));
        check(&sum(251), Ok(Cel::Int(252)));
        check(&sum(252), DEEP);
        check(&format!("{{}}{}", ".a".repeat(250)), Err("no such key"));
        check(&format!("{{}}{}", ".a".repeat(252)), DEEP);
        check(&format!("'{}' == ''", "(+".repeat(5_000)), Ok(Cel::Bool(false)));
        check(&format!("r'\\' == {}", nested(250)), NESTED);
        check(&" ".repeat(20_001), Err("20001 bytes"));
    }

    #[test]
    fn strings_and_comments_hide_no_depth() {
        let deep = format!("1{}", "+1".repeat(9_000));
        let nested = "(".repeat(9_000);
        for begin in
            ["'''a'b''' + ", "\"\"\"a\"b\"\"\" + ", "// '\n", "'\n", "'\\''+", "r'\\'+", "`'`\n+", "r'''\\''' + "]
        {
            check(&format!("{begin}{deep}"), DEEP);
            check(&format!("{begin}{nested}"), NESTED);
        }
        check(&format!("'''{nested}''' == ''"), Ok(Cel::Bool(false)));
        check(&format!("true // {nested}"), Ok(Cel::Bool(true)));
    }

    #[test]
    fn logical_chains_and_minus_signs_have_no_depth() {
        check(&format!("true{}", " && 1 < 2 || false".repeat(500)), Ok(Cel::Bool(true)));
        check(&format!("{}true", "!".repeat(1_001)), Ok(Cel::Bool(false)));
        check(&format!("{}1", "-".repeat(1_000)), Ok(Cel::Int(1)));
        check(&format!("[{}].size()", "1 < 2 ? 1 : 2, ".repeat(500)), Ok(Cel::Int(500)));
    }
}
