//! What keeps an expression that has a type from becoming a program: types that are checked and lead nowhere, and conversions of
//! constants, which are made before there is a value.
//!
//! Upstream: `cel-go/interpreter/planner.go`, `decOptimize` in `interpreter/decorators.go`.

use crate::{
    parser,
    room::{depth_of_text, with_room},
    tree::{Node, Part},
};

/// Types that the checker knows by these names, and the program does not.
const NOWHERE: [&str; 2] = ["duration", "timestamp"];
const TRUTHS: [&str; 12] = ["1", "t", "T", "true", "TRUE", "True", "0", "f", "F", "false", "FALSE", "False"];

/// Whether an expression that has a type can be made a program.
///
/// # Errors
/// Why not, in the words of cel-go.
pub fn instantiate(expression: &str) -> Result<(), String> {
    with_room(depth_of_text(expression), || match parser::parse(expression) {
        Some(Ok(tree)) => planned(&tree, &mut Vec::new()).map(drop),
        _ => Ok(()),
    })
}

/// Plans a part of an expression; hands back the text that it is, where that is constant.
fn planned<'a>(node: &'a Node, declared: &mut Vec<&'a str>) -> Result<Option<&'a str>, String> {
    let n_before = declared.len();
    match &node.is {
        Part::Text(text) => return Ok(Some(text)),
        Part::Name(name) if NOWHERE.contains(&name.as_str()) && !declared.contains(&name.as_str()) => {
            return Err(format!("reference to undefined type: {name}"));
        }
        Part::Call { target: None, name, arguments } if arguments.len() == 1 => {
            let Some(text) = planned(&arguments[0], declared)? else { return Ok(None) };
            return match name.as_str() {
                "string" | "dyn" => Ok(Some(text)),
                name => converted(name, text).map(|()| None),
            };
        }
        Part::Loop { declared: names, .. } => declared.extend(names.iter().map(String::as_str)),
        _ => {}
    }
    for part in node.parts() {
        planned(part, declared)?;
    }
    declared.truncate(n_before);
    Ok(None)
}

fn converted(to: &str, text: &str) -> Result<(), String> {
    let fits = match to {
        "int" => text.parse::<i64>().is_ok(),
        "uint" => !text.starts_with('+') && text.parse::<u64>().is_ok(),
        "double" => is_double(text),
        "bool" => TRUTHS.contains(&text),
        _ => true,
    };
    if fits { Ok(()) } else { Err(format!("type conversion error from 'string' to '{to}'")) }
}

/// Whether Go's `ParseFloat` reads a text.
fn is_double(text: &str) -> bool {
    let plain = text.replace('_', "").to_ascii_lowercase();
    let is_named = plain.trim_start_matches(['-', '+']).starts_with("inf");
    plain.contains("0x") || plain.parse::<f64>().is_ok_and(|number| is_named || !number.is_infinite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_converted_before_there_is_a_value() {
        let error = |to: &str| Err(format!("type conversion error from 'string' to '{to}'"));
        for (expression, expected) in [
            ("int('a') == 1 || true", error("int")),
            ("self.hosts.all(x, int(dyn('a')) == 1)", error("int")),
            ("int(string(' 1')) == 1", error("int")),
            ("int('9223372036854775808') == 1", error("int")),
            ("int('-1') == 1", Ok(())),
            ("uint('+1') == 1u", error("uint")),
            ("double('1e400') == 1.0", error("double")),
            ("double('inf') == double('1_0.0')", Ok(())),
            ("bool('tRUE')", error("bool")),
            ("bool('T')", Ok(())),
            ("int(self.name) == 1", Ok(())),
            ("type(self.since) == timestamp", Err("reference to undefined type: timestamp".into())),
            ("self.hosts.all(duration, duration == 'a')", Ok(())),
        ] {
            assert_eq!(instantiate(expression), expected, "{expression}");
        }
    }
}
