//! Estimates the maximum cost of the CEL rules of a schema from the bounds that the schema sets. A CRD whose rules are
//! too expensive is therefore rejected before any object exists.
//!
//! Upstream: `cel_validation.go` and `validation.go` of apiextensions-apiserver.
//!
//! The estimate of one rule multiplies the cost of one evaluation (by `kctl_cel::estimate`) with the number of times
//! that the schema lets the value occur. Without `maxItems`, `maxLength` and so on, the size of the largest request is
//! the only bound, and rules in nested lists easily exceed the limit.
//!
//! Limits: `RULE_MAX` per expression and `TOTAL_MAX` for all expressions of a version's schema.

use kctl_cel::{RULE_MAX, SchemaOf, TOTAL_MAX};
use kube_cel::cel::common::ast::IdedExpr;
use serde_json::Value;

use crate::{
    cel::cost::depth,
    field_errors::{Errors, FieldError},
};

/// Minimum cost of a rule to be named in the error about the total cost: one percent of the limit.
const NAMED_MIN: u64 = TOTAL_MAX / 100;
/// Maximum number of rules that the error about the total cost names.
const N_NAMED_MAX: usize = 4;

/// The remedy for rules that cost too much.
const RULE_REMEDY: &str =
    "simplify the rule, or set maxItems, maxProperties and maxLength on the lists, maps and strings";

/// The estimated cost of all rules of a schema.
#[derive(Default)]
pub(super) struct Total {
    /// Saturating: a cost beyond 64 bits is set to the maximum and always exceeds the limit.
    cost: u64,
    /// Costs and paths of the most expensive rules, in descending order: at most `N_NAMED_MAX`, each at least
    /// `NAMED_MIN`.
    most_expensive: Vec<(u64, String)>,
}

/// Maximum number of values of a schema in one object; `None` if only the request size bounds it.
#[derive(Clone, Copy)]
pub(super) struct Count(Option<u64>);

impl Count {
    /// Returns the count of the root: one object.
    pub(super) fn of_root() -> Self {
        Self(Some(1))
    }

    /// Returns the count of the schemas directly below `schema`: multiplied by `maxItems` or `maxProperties`.
    ///
    /// If a count is unbounded (`None`), all counts below it are, too. A negative bound counts as 0.
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

/// A CEL expression of a validation rule.
#[derive(Clone, Copy)]
pub(super) enum Expression {
    /// Evaluated for every value.
    Rule,
    /// Evaluated when its rule fails.
    Message,
}

impl Expression {
    /// Returns the remedy for an expression that costs too much. An integer has no bound that could be set, and the
    /// estimate of `string(n)` has none either.
    fn remedy(self) -> &'static str {
        match self {
            Self::Rule => RULE_REMEDY,
            Self::Message => {
                "simplify it, write numbers with `'max is %d'.format([self.max])` instead of `'max is ' + string(self.max)`, \
                 or set maxItems, maxProperties and maxLength on the lists, maps and strings"
            }
        }
    }

    /// Returns the field of the rule that holds the expression.
    pub(super) fn field(self) -> &'static str {
        match self {
            Self::Rule => "rule",
            Self::Message => "messageExpression",
        }
    }
}

/// The values on which an expression is evaluated.
#[derive(Clone, Copy)]
pub(super) struct Values<'a> {
    /// The schema that bounds the values' sizes.
    pub(super) schema: &'a Value,
    /// A complete object has metadata that expressions can read.
    pub(super) schema_of: SchemaOf,
    /// Maximum number of the values.
    pub(super) count: Count,
}

impl Total {
    /// Adds the cost of an expression, and returns an error if it alone exceeds the limit.
    ///
    /// `path` is the field path of the expression. An unbounded count is replaced by the number of values that fit in a
    /// request. The cost counts towards the total even if the expression is rejected.
    pub(super) fn add(
        &mut self,
        which: Expression,
        tree: &IdedExpr,
        values: Values<'_>,
        path: String,
    ) -> Option<FieldError> {
        let Values { schema, schema_of, count } = values;
        let once = kctl_cel::with_large_stack(depth(tree), || kctl_cel::estimate(tree, schema, schema_of));
        let (cost, what) = match which {
            Expression::Rule => (
                once.saturating_mul(count.0.unwrap_or_else(|| kctl_cel::max_in_request(schema))),
                "the estimated cost of the rule",
            ),
            // A `messageExpression` runs at most once, for the rule that failed.
            Expression::Message => (once, "the estimated cost of the messageExpression"),
        };
        self.cost = self.cost.saturating_add(cost);
        let rejected =
            (cost > RULE_MAX).then(|| FieldError::forbidden(&path, &exceeds(what, cost, RULE_MAX, which.remedy())));
        if cost >= NAMED_MIN {
            self.most_expensive.push((cost, path));
            self.most_expensive.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
            self.most_expensive.truncate(N_NAMED_MAX);
        }
        debug_assert!(
            self.most_expensive.iter().all(|(cost, _)| (NAMED_MIN..=self.cost).contains(cost)),
            "only expensive rules are named, and each is a part of the total"
        );
        rejected
    }

    /// Returns the errors about the total cost, if it exceeds the limit.
    pub(super) fn into_errors(self, path: &str) -> Errors {
        if self.cost <= TOTAL_MAX {
            return Errors::default();
        }
        let part = "is one of the most expensive rules of a schema whose rules cost too much together";
        let mut errors: Errors =
            self.most_expensive.iter().map(|(_, field_path)| FieldError::forbidden(field_path, part)).collect();
        let what = "the estimated cost of all rules of the schema";
        errors.forbidden(path, &exceeds(what, self.cost, TOTAL_MAX, RULE_REMEDY));
        errors
    }
}

/// Returns the message about a cost above its limit.
fn exceeds(what: &str, cost: u64, limit: u64, remedy: &str) -> String {
    format!("{what} is {cost}, at most {limit} is allowed: {remedy}")
}
