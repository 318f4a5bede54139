//! What an object uses of a quota, by its kind.
//!
//! Behaviour: `k8s.io/kubernetes/pkg/quota/v1/evaluator/core`, and `generic/evaluator.go` of `k8s.io/apiserver`.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::pods;
use crate::{
    admit::{
        amounts::{Amounts, Quantity, Side},
        class_of_claim,
    },
    request::Operation,
    status::GroupResource,
};

/// Of these nothing is counted (`DefaultIgnoredResources`).
const IGNORED: &[(&str, &str)] = &[
    ("", "bindings"),
    ("", "componentstatuses"),
    ("", "events"),
    ("events.k8s.io", "events"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
];
/// These are counted by their plain names as well.
const BY_NAME: &[&str] = &["configmaps", "resourcequotas", "replicationcontrollers", "secrets"];
/// Between the name of a class of storage and what is counted of its claims.
const OF_CLASS: &str = ".storageclass.storage.k8s.io/";
const OF_CLAIMS: &[&str] = &["persistentvolumeclaims", "requests.storage"];

/// Counts the objects of one resource.
#[derive(Clone, Debug)]
pub(crate) struct Counter {
    of: GroupResource,
    /// `count/deployments.apps`.
    by_count: String,
}

impl Counter {
    /// Nothing for resources that are never counted.
    pub(crate) fn of(of: &GroupResource) -> Option<Self> {
        let is_ignored = IGNORED.contains(&(of.group.as_str(), of.resource.as_str()));
        (!is_ignored).then(|| Self { of: of.clone(), by_count: format!("count/{of}") })
    }

    pub(crate) fn resource(&self) -> &GroupResource {
        &self.of
    }

    fn core(&self) -> Option<&str> {
        self.of.group.is_empty().then_some(self.of.resource.as_str())
    }

    /// Whether a write may change what is used.
    pub(crate) fn handles(&self, operation: Operation, part: &str, old: Option<&Value>, new: &Value) -> bool {
        let creates = operation == Operation::Create && part.is_empty();
        let updates = operation == Operation::Update && part.is_empty();
        match (self.core(), part) {
            (Some("pods"), "resize") => operation == Operation::Update,
            (Some("pods"), "") if updates => old.is_some_and(|old| pods::has_deadline(old) != pods::has_deadline(new)),
            (Some("services" | "persistentvolumeclaims"), "") => creates || updates,
            (Some("persistentvolumeclaims"), "status") => true,
            _ => creates,
        }
    }

    /// Whether an amount of a quota is about these objects.
    pub(crate) fn counts(&self, name: &str) -> bool {
        if name == self.by_count {
            return true;
        }
        match self.core() {
            Some("pods") => pods::counts(name),
            Some("services") => ["services", "services.nodeports", "services.loadbalancers"].contains(&name),
            Some("persistentvolumeclaims") => {
                let plain = name.split_once(OF_CLASS).map_or(name, |(_, plain)| plain);
                OF_CLAIMS.contains(&plain)
            }
            Some(resource) => BY_NAME.contains(&resource) && resource == name,
            None => false,
        }
    }

    /// What an object has to say because a quota counts it, and does not.
    pub(super) fn missing(&self, counted: &BTreeSet<&str>, object: &Value) -> Option<String> {
        if self.core() == Some("pods") { pods::missing(counted, &object["spec"]) } else { None }
    }

    /// What an object uses.
    pub(super) fn usage(&self, object: &Value, now: Timestamp) -> Amounts {
        let mut usage = Amounts::from([(self.by_count.clone(), Quantity::count(1))]);
        match self.core() {
            Some("pods") if is_spent(object, now) => {}
            Some("pods") => usage.extend(pods::usage(&object["spec"])),
            Some("services") => usage.extend(of_service(&object["spec"])),
            Some("persistentvolumeclaims") => usage.extend(of_claim(object)),
            Some(resource) if BY_NAME.contains(&resource) => {
                usage.insert(resource.to_owned(), Quantity::count(1));
            }
            _ => {}
        }
        usage
    }

    /// The names by which claims are told from one another in a scope.
    pub(super) fn is_of(&self, resource: &str) -> bool {
        self.core() == Some(resource)
    }
}

/// Whether a pod has ended, or should have by now (`QuotaV1Pod`).
pub(crate) fn is_spent(pod: &Value, now: Timestamp) -> bool {
    if ["Failed", "Succeeded"].contains(&pod["status"]["phase"].as_str().unwrap_or_default()) {
        return true;
    }
    let meta = &pod["metadata"];
    let due: Option<Timestamp> = meta["deletionTimestamp"].as_str().and_then(|time| time.parse().ok());
    let (Some(due), Some(grace)) = (due, meta["deletionGracePeriodSeconds"].as_i64()) else { return false };
    now.duration_since(due) > jiff::SignedDuration::from_secs(grace)
}

fn of_service(spec: &Value) -> Amounts {
    let ports = spec["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    let n_given = ports.iter().filter(|port| port["nodePort"].as_i64().unwrap_or(0) != 0).count();
    let (n_ports, n_balancers) = match spec["type"].as_str() {
        Some("NodePort") => (ports.len(), 0),
        Some("LoadBalancer") if spec["allocateLoadBalancerNodePorts"] == false => (n_given, 1),
        Some("LoadBalancer") => (ports.len(), 1),
        _ => (0, 0),
    };
    let count = |amount: usize| Quantity::count(i64::try_from(amount).unwrap_or(i64::MAX));
    Amounts::from([
        ("services".into(), count(1)),
        ("services.nodeports".into(), count(n_ports)),
        ("services.loadbalancers".into(), count(n_balancers)),
    ])
}

fn of_claim(claim: &Value) -> Amounts {
    let asked = Side::Requests.of(&claim["spec"]).get("storage").map(|amount| amount.rounded());
    let given = crate::admit::amounts::read(&claim["status"]["allocatedResources"]).get("storage").copied();
    let size = asked.map(|asked| given.filter(|given| given.thousandths() > asked.thousandths()).unwrap_or(asked));
    let class = class_of_claim(claim);
    let mut usage = Amounts::new();
    for (name, amount) in [("persistentvolumeclaims", Some(Quantity::count(1))), ("requests.storage", size)] {
        let Some(amount) = amount else { continue };
        usage.insert(name.into(), amount);
        if !class.is_empty() {
            usage.insert(format!("{class}{OF_CLASS}{name}"), amount);
        }
    }
    usage
}
