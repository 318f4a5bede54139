//! Expressions of admission as the real server checks them before it stores them: reads a text and what it may name, hands on its
//! type, or what is wrong in the words and at the places of cel-go.

mod check;
mod library;
mod literals;
mod token;
mod tree;
mod types;

use self::{check::Checker, tree::Refused};
pub(crate) use self::{check::Environment, types::Type};

/// The type of an expression that a parser has accepted; none where nothing is known of it.
///
/// # Errors
/// All that is wrong, one below the other, as cel-go shows it.
pub(crate) fn type_of(expression: &str, environment: &Environment) -> Result<Option<Type>, String> {
    let Some(tree) = tree::parse(expression) else { return Ok(None) };
    let tree = tree.map_err(|refused| shown(expression, refused))?;
    let mut checker = Checker::new(environment);
    let found = checker.whole(&tree);
    let mut errors = checker.errors;
    if errors.is_empty() {
        literals::check(&tree, &mut errors);
    }
    if errors.is_empty() { Ok(Some(found)) } else { Err(shown(expression, errors)) }
}

/// Errors in the order of their places, each with its line and a mark below.
fn shown(expression: &str, mut errors: Vec<Refused>) -> String {
    errors.sort_by_key(|error| error.at);
    errors.dedup();
    let one = |error: &Refused| {
        let letters: Vec<char> = expression.chars().take(error.at).collect();
        let line = letters.iter().filter(|letter| **letter == '\n').count();
        let column = letters.iter().rev().take_while(|letter| **letter != '\n').count();
        let text = expression.lines().nth(line).unwrap_or_default();
        // What takes several bytes is marked by a wide letter.
        let mark = |letter: Option<char>, narrow, wide| {
            if letter.is_some_and(|letter| letter.len_utf8() > 1) { wide } else { narrow }
        };
        let dots: String = text.chars().take(column).map(|letter| mark(Some(letter), '.', '．')).collect();
        let arrow = mark(text.chars().nth(column), '^', '＾');
        format!("ERROR: <input>:{}:{}: {}\n | {text}\n | {dots}{arrow}", line + 1, column + 1, error.why)
    };
    errors.iter().map(one).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expression: &str, expected: Result<&str, &str>) {
        let environment = Environment::default()
            .with("object", Type::Dyn)
            .with("request", Type::Object("kubernetes.AdmissionRequest".into()));
        let found = type_of(expression, &environment).map(|found| found.map(|found| found.whole_name()));
        let expected = expected.map(|name| Some(name.to_owned())).map_err(str::to_owned);
        assert_eq!(found, expected, "{expression}");
    }

    #[test]
    fn expressions_have_the_types_of_cel() {
        check("object.a.b", Ok("dyn"));
        check("request.userInfo.groups", Ok("list(string)"));
        check("[1, 2].map(x, string(x))", Ok("list(string)"));
        check("{'a': [1]}.a[0] + 1", Ok("int"));
        check("object.?a.orValue('b')", Ok("dyn"));
        check("optional.of(1).optMap(x, x + 1)", Ok("optional_type(int)"));
        check("{1: 'a'}.transformMap(k, v, v.size())", Ok("map(int, int)"));
        check("[]", Ok("list(dyn)"));
        check("object.a ? 1 : 2", Ok("int"));
        check("format.uuid().validate('a')", Ok("optional_type(list(string))"));
    }

    #[test]
    fn what_does_not_fit_is_shown_where_it_stands() {
        let wrong =
            "ERROR: <input>:1:3: found no matching overload for '_+_' applied to '(int, string)'\n | 1 + 'a'\n | ..^";
        check("1 + 'a'", Err(wrong));
        let two = "ERROR: <input>:1:1: undeclared reference to 'a' (in container '')\n | a && b\n | ^\n\
                   ERROR: <input>:1:6: undeclared reference to 'b' (in container '')\n | a && b\n | .....^";
        check("a && b", Err(two));
        check(
            "'é' - 1",
            Err(
                "ERROR: <input>:1:5: found no matching overload for '_-_' applied to '(string, int)'\n | 'é' - 1\n | .．..^",
            ),
        );
        check(
            "\n'a'\n - 1",
            Err("ERROR: <input>:3:2: found no matching overload for '_-_' applied to '(string, int)'\n |  - 1\n | .^"),
        );
        check("duration('x')", Err("ERROR: <input>:1:10: invalid duration argument\n | duration('x')\n | .........^"));
        check("request.nothing", Err("ERROR: <input>:1:8: undefined field 'nothing'\n | request.nothing\n | .......^"));
    }
}
