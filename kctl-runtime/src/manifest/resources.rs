//! CPU and memory of the generated container, in the words of `kubectl set resources`.

use std::{collections::BTreeMap, fmt, str::FromStr};

use kctl_apimachinery::quantity::Quantity;
use serde_json::{Value, json};

/// Resources that `kubectl set resources` knows without a plugin, and that a controller can use.
const KNOWN: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Requests and limits of the container of a generated Deployment.
///
/// The default is a request of 10m CPU and 32Mi of memory, and a memory limit of 256Mi. There is no CPU limit, because
/// a throttled controller renews its Lease late. Caches decide how much memory a program needs; the book's page about
/// performance has figures.
///
/// ```
/// use kctl_runtime::manifest::Resources;
///
/// let resources = Resources::default()
///     .with_requests(&"cpu=100m,memory=128Mi".parse()?)
///     .with_limits(&"memory=1Gi".parse()?);
/// assert_eq!(resources.object()["limits"]["memory"], "1Gi");
/// assert_eq!(resources.problem(), None);
/// # Ok::<_, kctl_runtime::manifest::QuantityError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resources {
    requests: Quantities,
    limits: Quantities,
}

impl Default for Resources {
    fn default() -> Self {
        let quantities = |pairs: &[(&str, &str)]| {
            Quantities(pairs.iter().map(|(name, quantity)| ((*name).to_owned(), (*quantity).to_owned())).collect())
        };
        Self { requests: quantities(&[("cpu", "10m"), ("memory", "32Mi")]), limits: quantities(&[("memory", "256Mi")]) }
    }
}

impl Resources {
    /// Replaces the requests that `changes` names. A quantity of 0 removes the request.
    #[must_use]
    pub fn with_requests(mut self, changes: &Quantities) -> Self {
        self.requests.change(changes);
        self
    }

    /// Replaces the limits that `changes` names. A quantity of 0 removes the limit.
    #[must_use]
    pub fn with_limits(mut self, changes: &Quantities) -> Self {
        self.limits.change(changes);
        self
    }

    /// Returns `resources` of a container.
    pub fn object(&self) -> Value {
        let sides = [("requests", &self.requests), ("limits", &self.limits)];
        sides
            .iter()
            .filter(|(_, side)| !side.0.is_empty())
            .map(|(name, side)| ((*name).to_owned(), json!(side.0)))
            .collect()
    }

    /// Returns the first request that exceeds its limit. API servers reject such a Pod
    /// (`ValidateResourceRequirements` in Kubernetes).
    pub fn problem(&self) -> Option<String> {
        self.requests.0.iter().find_map(|(name, request)| {
            let limit = self.limits.0.get(name)?;
            let exceeds =
                parse_amount(request).zip(parse_amount(limit)).is_some_and(|(request, limit)| request > limit);
            exceeds.then(|| format!("the {name} request {request} is greater than the {name} limit {limit}"))
        })
    }
}

/// Quantities by resource, as `kubectl set resources` takes them: `cpu=100m,memory=256Mi`.
///
/// ```
/// use kctl_runtime::manifest::Quantities;
///
/// assert!("cpu=100m,memory=1Gi".parse::<Quantities>().is_ok());
/// let error = "memory=1GB".parse::<Quantities>().unwrap_err();
/// assert_eq!(error.to_string(), "`1GB` is not a quantity of memory: write for example `256Mi`, or `0` for none");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Quantities(BTreeMap<String, String>);

impl Quantities {
    fn change(&mut self, changes: &Self) {
        for (name, quantity) in &changes.0 {
            if parse_amount(quantity).is_some_and(Quantity::is_zero) {
                self.0.remove(name);
            } else {
                self.0.insert(name.clone(), quantity.clone());
            }
        }
    }
}

/// A list of quantities that can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuantityError(String);

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for QuantityError {}

impl FromStr for Quantities {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let mut quantities = BTreeMap::new();
        for part in text.split(',') {
            let Some((name, quantity)) = part.split_once('=').filter(|(name, _)| KNOWN.contains(name)) else {
                let supported = KNOWN.join("`, `");
                return Err(QuantityError(format!(
                    "`{part}` is not `RESOURCE=QUANTITY` with one of `{supported}`: write for example `cpu=100m,memory=256Mi`"
                )));
            };
            if parse_amount(quantity).is_none() {
                let example = if name == "cpu" { "100m" } else { "256Mi" };
                return Err(QuantityError(format!(
                    "`{quantity}` is not a quantity of {name}: write for example `{example}`, or `0` for none"
                )));
            }
            if quantities.insert(name.to_owned(), quantity.to_owned()).is_some() {
                return Err(QuantityError(format!("`{name}` is given twice in `{text}`: leave one out")));
            }
        }
        Ok(Self(quantities))
    }
}

/// Parses a quantity; `None` if an API server would reject it, because resources can't be negative.
///
/// A suffix without digits is 0 in Kubernetes. Here it is rejected, because `memory=Gi` does not mean "no limit".
fn parse_amount(quantity: &str) -> Option<Quantity> {
    let has_digits = quantity.contains(|c: char| c.is_ascii_digit());
    quantity.parse().ok().filter(|amount: &Quantity| has_digits && !amount.is_negative())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Quantities {
        text.parse().unwrap()
    }

    #[test]
    fn malformed_or_unknown_resource_quantities_are_rejected() {
        for text in ["cpu=1", "cpu=0.5", "cpu=100m", "memory=1Gi", "memory=1e9", "memory=128974848", "cpu=1,memory=1Mi"]
        {
            assert!(text.parse::<Quantities>().is_ok(), "{text}");
        }
        for text in [
            "",
            "cpu",
            "cpu=",
            "cpu=1,",
            "gpu=1",
            "memory=1GB",
            "memory=-1",
            "memory=1e3Ki",
            "memory=Gi",
            "cpu=inf",
            "cpu=1 m",
        ] {
            assert!(text.parse::<Quantities>().is_err(), "{text}");
        }
        let twice = "cpu=1,cpu=2".parse::<Quantities>().unwrap_err().to_string();
        assert_eq!(twice, "`cpu` is given twice in `cpu=1,cpu=2`: leave one out");
    }

    #[test]
    fn zero_removes_a_limit() {
        let resources = Resources::default().with_limits(&parsed("memory=0,cpu=1"));
        assert_eq!(
            resources.object(),
            json!({ "requests": { "cpu": "10m", "memory": "32Mi" }, "limits": { "cpu": "1" } })
        );
        let none = Resources::default().with_limits(&parsed("memory=0")).with_requests(&parsed("cpu=0m,memory=0"));
        assert_eq!(none.object(), json!({}));
    }

    #[test]
    fn request_above_its_limit_is_a_problem() {
        let problem = |requests: &str| Resources::default().with_requests(&parsed(requests)).problem();
        assert_eq!((problem("memory=256Mi"), problem("cpu=4")), (None, None));
        let expected = "the memory request 1Gi is greater than the memory limit 256Mi";
        assert_eq!(problem("memory=1Gi").as_deref(), Some(expected));
    }
}
