//! What the rules of a schema cost at most, by the bounds that the schema sets: what is too dear is refused before there is
//! an object. Reads the schema and its rules, hands on causes in the words of the real server.
//!
//! Upstream: `cel_validation.go` and `validation.go` of apiextensions-apiserver.

use kctl_cel::{RULE_MAX, TOTAL_MAX};
use kube_cel::cel::common::ast::IdedExpr;
use serde_json::Value;

use crate::{cel::cost::depth, field_error::FieldError};

/// A rule of less is not named among those that make a schema too dear.
const NAMED_MIN: u64 = TOTAL_MAX / 100;
/// How many are named.
const N_NAMED_MAX: usize = 4;

/// What all rules of a schema cost together.
#[derive(Default)]
pub(super) struct Total {
    cost: u64,
    /// The dearest rules, the dearest first.
    dearest: Vec<(u64, String)>,
}

/// How many values of a kind an object can have: none where only the size of a request bounds them.
#[derive(Clone, Copy)]
pub(super) struct Count(Option<u64>);

impl Count {
    pub(super) fn of_root() -> Self {
        Self(Some(1))
    }

    /// Of what is directly below a schema.
    pub(super) fn below(self, schema: &Value) -> Self {
        let bound = |key: &str| schema[key].as_i64().map(|bound| u64::try_from(bound).unwrap_or(0));
        let times = match schema["type"].as_str().unwrap_or_default() {
            "object" if schema["additionalProperties"].is_object() => bound("maxProperties"),
            "array" => bound("maxItems"),
            _ => Some(1),
        };
        Self(self.0.zip(times).map(|(above, times)| above.saturating_mul(times)))
    }
}

/// An expression of a rule.
#[derive(Clone, Copy)]
pub(super) enum Expression {
    Rule,
    Message,
}

impl Expression {
    /// Where it stands in a rule.
    pub(super) fn field(self) -> &'static str {
        match self {
            Self::Rule => "rule",
            Self::Message => "messageExpression",
        }
    }
}

impl Total {
    /// Adds an expression about the values of a schema, and says if it is too dear.
    pub(super) fn add(
        &mut self,
        which: Expression,
        tree: &IdedExpr,
        (schema, is_whole, count): (&Value, bool, Count),
        at: String,
    ) -> Option<FieldError> {
        let is_whole = is_whole || schema["x-kubernetes-embedded-resource"] == true;
        let once = kctl_cel::with_room(depth(tree), || kctl_cel::estimate(tree, schema, is_whole));
        let (cost, what) = match which {
            Expression::Rule => (
                once.saturating_mul(count.0.unwrap_or_else(|| kctl_cel::max_in_request(schema))),
                "the estimated cost of the rule",
            ),
            // There is one message, of the rule that has failed.
            Expression::Message => (once, "the estimated cost of the messageExpression"),
        };
        self.cost = self.cost.saturating_add(cost);
        let refused = (cost > RULE_MAX).then(|| FieldError::forbidden(&at, &exceeds(what, cost, RULE_MAX)));
        if cost >= NAMED_MIN {
            self.dearest.push((cost, at));
            self.dearest.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
            self.dearest.truncate(N_NAMED_MAX);
        }
        refused
    }

    /// What is said of all together, if they are too dear.
    pub(super) fn causes(self, path: &str) -> Vec<FieldError> {
        if self.cost <= TOTAL_MAX {
            return Vec::new();
        }
        let part = "is one of the most expensive rules of a schema whose rules cost too much together";
        let mut causes: Vec<FieldError> = self.dearest.iter().map(|(_, at)| FieldError::forbidden(at, part)).collect();
        let what = "the estimated cost of all rules of the schema";
        causes.push(FieldError::forbidden(path, &exceeds(what, self.cost, TOTAL_MAX)));
        causes
    }
}

fn exceeds(what: &str, cost: u64, limit: u64) -> String {
    format!(
        "{what} is {cost}, at most {limit} is allowed: simplify the rule, or set maxItems, maxProperties and maxLength on the \
         lists, maps and strings"
    )
}
