//! Label selectors in their string form, as in `kubectl get -l`.
//!
//! Upstream: `k8s.io/apimachinery/pkg/labels/selector.go`.
//!
//! ```
//! use kctl_apimachinery::labels;
//!
//! let labels = [("app", "web"), ("tier", "2")];
//! let value = |key: &str| labels.iter().find(|(known, _)| *known == key).map(|(_, value)| *value);
//! let selector = labels::parse("app in (web, db),tier>1,!legacy").unwrap();
//! assert!(selector.iter().all(|wanted| wanted.matches(value(&wanted.key))));
//! ```

use crate::validation::{is_label_value, is_qualified_name};

/// The operator of a [`Requirement`].
///
/// ```
/// use kctl_apimachinery::labels::Operator;
///
/// assert_eq!(Operator::DoesNotExist.name(), Some("DoesNotExist"));
/// assert_eq!(Operator::GreaterThan.name(), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// The label has one of the values.
    In,
    /// The label is absent or has none of the values.
    NotIn,
    /// The label is present.
    Exists,
    /// The label is absent.
    DoesNotExist,
    /// The label is an integer above the value.
    GreaterThan,
    /// The label is an integer below the value.
    LessThan,
}

impl Operator {
    /// Returns the operator as `matchExpressions` of a `metav1.LabelSelector` has it; `None` for comparisons, which
    /// exist only in the string form.
    ///
    /// ```
    /// use kctl_apimachinery::labels;
    ///
    /// let selector = labels::parse("app!=web").unwrap();
    /// assert_eq!(selector[0].operator.name(), Some("NotIn"));
    /// ```
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::In => "In",
            Self::NotIn => "NotIn",
            Self::Exists => "Exists",
            Self::DoesNotExist => "DoesNotExist",
            Self::GreaterThan | Self::LessThan => return None,
        })
    }
}

/// One requirement of a label selector. An object is selected if it meets all of them.
///
/// ```
/// use kctl_apimachinery::labels::{self, Operator};
///
/// let selector = labels::parse("app notin (web,db)").unwrap();
/// assert_eq!((selector[0].key.as_str(), selector[0].operator), ("app", Operator::NotIn));
/// assert_eq!(selector[0].values, ["web", "db"]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Requirement {
    /// The key of the label.
    pub key: String,
    /// The condition.
    pub operator: Operator,
    /// The values of the operator: one integer for a comparison, none for `Exists` and `DoesNotExist`.
    pub values: Vec<String>,
}

impl Requirement {
    /// Returns `true` if the value of the label meets the condition. `None` is an absent label.
    ///
    /// ```
    /// use kctl_apimachinery::labels;
    ///
    /// let selector = labels::parse("app!=web").unwrap();
    /// assert!(selector[0].matches(None) && selector[0].matches(Some("db")) && !selector[0].matches(Some("web")));
    /// ```
    #[must_use]
    pub fn matches(&self, label: Option<&str>) -> bool {
        let is_listed = || label.is_some_and(|label| self.values.iter().any(|value| value == label));
        let compared = || {
            let number = |text: &str| text.parse::<i64>().ok();
            Some(number(label?)?.cmp(&number(self.values.first()?)?))
        };
        match self.operator {
            Operator::In => is_listed(),
            Operator::NotIn => !is_listed(),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan => compared().is_some_and(std::cmp::Ordering::is_gt),
            Operator::LessThan => compared().is_some_and(std::cmp::Ordering::is_lt),
        }
    }
}

/// Parses a label selector; `None` if it is invalid. The empty selector has no requirements and selects all objects.
///
/// ```
/// use kctl_apimachinery::labels;
///
/// assert_eq!(labels::parse("").unwrap().len(), 0);
/// assert_eq!(labels::parse("a=b,c!=d").unwrap().len(), 2);
/// assert!(labels::parse("a within (b)").is_none());
/// ```
#[must_use]
pub fn parse(selector: &str) -> Option<Vec<Requirement>> {
    LabelParser { rest: selector.trim() }.parse()
}

/// A recursive descent parser of label selectors (`k8s.io/apimachinery/pkg/labels/selector.go`).
struct LabelParser<'a> {
    rest: &'a str,
}

impl<'a> LabelParser<'a> {
    /// Parses a label selector; returns `None` if it is not valid.
    fn parse(mut self) -> Option<Vec<Requirement>> {
        let mut requirements = Vec::new();
        while !self.rest.is_empty() {
            requirements.push(self.requirement()?);
            self.rest = self.rest.trim_start();
            match self.rest.strip_prefix(',') {
                Some(rest) if !rest.trim().is_empty() => self.rest = rest.trim_start(),
                None if self.rest.is_empty() => break,
                _ => return None,
            }
        }
        Some(requirements)
    }

    /// Takes the next word.
    fn word(&mut self) -> &'a str {
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|c: char| c.is_whitespace() || "=!,()<>".contains(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        word
    }

    /// Takes a token, if it is next.
    fn eat(&mut self, token: &str) -> bool {
        let rest = self.rest.strip_prefix(token);
        rest.map(|rest| self.rest = rest.trim_start()).is_some()
    }

    /// Parses one requirement.
    fn requirement(&mut self) -> Option<Requirement> {
        if self.eat("!") {
            return Some(Requirement { key: self.key()?, operator: Operator::DoesNotExist, values: Vec::new() });
        }
        let key = self.key()?;
        let (operator, values) = if self.rest.is_empty() || self.rest.starts_with(',') {
            (Operator::Exists, Vec::new())
        } else if self.eat("==") || self.eat("=") {
            (Operator::In, vec![self.value()?])
        } else if self.eat("!=") {
            (Operator::NotIn, vec![self.value()?])
        } else if self.eat(">") {
            (Operator::GreaterThan, vec![self.integer()?])
        } else if self.eat("<") {
            (Operator::LessThan, vec![self.integer()?])
        } else {
            match self.word() {
                "in" => (Operator::In, self.values()?),
                "notin" => (Operator::NotIn, self.values()?),
                _ => return None,
            }
        };
        Some(Requirement { key, operator, values })
    }

    /// Parses the integer of a comparison. A sign is not valid in a label value, so `-3` is an error (`validateLabelValue`).
    fn integer(&mut self) -> Option<String> {
        Some(self.word()).filter(|word| is_label_value(word) && word.parse::<i64>().is_ok()).map(str::to_owned)
    }

    /// Parses a label key.
    fn key(&mut self) -> Option<String> {
        Some(self.word()).filter(|key| is_qualified_name(key)).map(str::to_owned)
    }

    /// Parses a label value.
    fn value(&mut self) -> Option<String> {
        let begins_with_operator = self.rest.starts_with(['=', '!', '(', '<', '>']);
        Some(self.word()).filter(|value| !begins_with_operator && is_label_value(value)).map(str::to_owned)
    }

    /// Parses a list of values in parentheses, which may be empty, as in `()` and `(,a)` (`parseIdentifiersList`). A value
    /// that is listed twice is kept once.
    fn values(&mut self) -> Option<Vec<String>> {
        let mut values = Vec::new();
        let mut is_open = self.eat("(");
        while is_open {
            let value = Some(self.word()).filter(|value| is_label_value(value))?.to_owned();
            if !values.contains(&value) {
                values.push(value);
            }
            if self.eat(")") {
                return Some(values);
            }
            is_open = self.eat(",");
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns `true` if a selector selects the labels `app=web,tier=2`; `None` if it is invalid.
    fn selects(selector: &str) -> Option<bool> {
        let value = |key: &str| match key {
            "app" => Some("web"),
            "tier" => Some("2"),
            _ => None,
        };
        parse(selector).map(|all| all.iter().all(|wanted| wanted.matches(value(&wanted.key))))
    }

    #[test]
    fn labels_are_selected_by_every_operator() {
        for (selector, expected) in [
            ("", true),
            ("app", true),
            ("!app", false),
            ("app=web", true),
            ("app==web,tier=2", true),
            ("app!=web", false),
            ("other!=web", true),
            ("app in (db, web)", true),
            ("app in (db)", false),
            ("app notin (db,web)", false),
            ("other notin (db)", true),
            ("tier>1", true),
            ("tier>2", false),
            ("tier<2", false),
            ("tier<3", true),
            ("app>1", false),
            (" app = web , !other ", true),
            ("app=", false),
            ("app in ()", false),
        ] {
            assert_eq!(selects(selector), Some(expected), "{selector}");
        }
    }

    #[test]
    fn invalid_selectors_are_rejected() {
        for selector in [
            "a===b",
            "a in",
            "a in (b",
            "a in b)",
            "a in (b c)",
            "a in (,b",
            "a,",
            ",a",
            "=a",
            "a>b",
            "tier<-3",
            "a b",
            "a within (b)",
            "a/b/c=d",
            "a=b c",
            "a=-b",
            "a=b=c",
            "!",
            "…",
        ] {
            assert_eq!(selects(selector), None, "{selector}");
        }
    }

    #[test]
    fn requirements_have_the_operators_of_match_expressions() {
        for (selector, operator, values) in [
            ("a=b", "In", &["b"][..]),
            ("a==b", "In", &["b"]),
            ("a!=b", "NotIn", &["b"]),
            ("a", "Exists", &[]),
            ("!a", "DoesNotExist", &[]),
            ("a in (x, y)", "In", &["x", "y"]),
            ("a notin (x)", "NotIn", &["x"]),
            ("a in ()", "In", &[""]),
            ("a in (,x)", "In", &["", "x"]),
            ("a in (x,)", "In", &["x", ""]),
            ("a in (x,,)", "In", &["x", ""]),
            ("a in (x,,x,,y)", "In", &["x", "", "y"]),
            ("a in (in,notin)", "In", &["in", "notin"]),
        ] {
            let parsed = parse(selector).unwrap();
            let [wanted] = &parsed[..] else { panic!("{selector}: {parsed:?}") };
            assert_eq!((wanted.key.as_str(), wanted.operator.name()), ("a", Some(operator)), "{selector}");
            assert_eq!(wanted.values, values, "{selector}");
        }
    }
}
