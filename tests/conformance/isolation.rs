//! Checks that webhook configurations and policies of a case match only objects of that case: cases run concurrently on
//! a real server.
//!
//! A policy with a namespace selector also matches all cluster-scoped objects.

use std::collections::BTreeSet;

use http::{Request, header};
use serde_json::Value;

use crate::{
    TOPICS,
    case::{Step, Topic},
    recorded,
    server::Server,
};

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
/// Variables that are unique to a case. A rule that contains one matches nothing of other cases.
const OWN: [&str; 2] = ["$NS", "$GROUP"];
/// Groups and resources that no server has.
const NOTHING: [&str; 3] = ["nope.x", "nothings", "xs"];

#[tokio::test]
async fn admission_rules_match_only_own_objects() {
    let cluster_wide = cluster_wide(&Server::embedded()).await;
    let mut strays = Vec::new();
    for topic in TOPICS {
        let (topic, recorded) = (Topic::read(topic, ""), recorded::read(topic));
        let setup = topic.setup.iter().map(|step| ("setup", step));
        let done = topic.cases.iter().flat_map(|case| {
            let responses = recorded.get(&case.name).map_or(&[][..], Vec::as_slice);
            let is_taken =
                |index: usize| responses.get(index).is_none_or(|response| response["code"].as_u64() < Some(300));
            let taken = case.steps.iter().enumerate().filter(move |(index, _)| is_taken(*index));
            taken.map(|(_, step)| (case.name.as_str(), step))
        });
        for (case, step) in setup.chain(done) {
            let stray = rules(step).into_iter().find(|(limits, rule)| !is_own(limits, rule, &cluster_wide));
            strays.extend(stray.map(|(_, rule)| format!("{}: {case}: {rule}", topic.name)));
        }
    }
    assert!(strays.is_empty(), "other cases are disturbed by\n  {}", strays.join("\n  "));
}

/// Returns the admission rules that a step creates, each with the webhook or policy spec that limits it.
fn rules(step: &Step) -> Vec<(&Value, &Value)> {
    if !step.request.contains(CONFIGURATIONS) || step.request.contains("dryRun=All") {
        return Vec::new();
    }
    let (spec, all) = (&step.body["spec"], |rules: &'_ Value| rules.as_array().map_or(0, Vec::len));
    let policy_rules = &spec["matchConstraints"]["resourceRules"];
    let mut found: Vec<_> = (0..all(policy_rules)).map(|index| (spec, &policy_rules[index])).collect();
    for webhook in step.body["webhooks"].as_array().into_iter().flatten() {
        found.extend((0..all(&webhook["rules"])).map(|index| (webhook, &webhook["rules"][index])));
    }
    found
}

/// Returns `true` if a rule cannot match an object of another case.
fn is_own(limits: &Value, rule: &Value, cluster_wide: &BTreeSet<String>) -> bool {
    let names = |value: &Value| OWN.iter().any(|own| value.to_string().contains(own));
    let constraints = if limits["matchConstraints"].is_null() { limits } else { &limits["matchConstraints"] };
    let by_object =
        [&limits["matchConditions"], &constraints["objectSelector"], &rule["resourceNames"], &rule["apiGroups"]];
    let resources = || rule["resources"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let is_nothing = ["apiGroups", "resources"].into_iter().any(|field| {
        let all = rule[field].as_array().map_or(&[][..], Vec::as_slice);
        !all.is_empty() && all.iter().all(|name| NOTHING.iter().any(|nothing| name == nothing))
    });
    let in_namespace = rule["scope"] == "Namespaced"
        || resources().all(|resource| {
            let resource = resource.split('/').next().unwrap_or_default();
            // A request for a Namespace object has this namespace as its `namespace` attribute.
            resource == "namespaces" || (resource != "*" && !cluster_wide.contains(resource))
        });
    by_object.into_iter().any(names) || is_nothing || (in_namespace && names(&constraints["namespaceSelector"]))
}

/// Returns the names of the cluster-scoped resources.
async fn cluster_wide(server: &Server) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for path in ["/api", "/apis"] {
        let request = Request::get(path).header(header::ACCEPT, AGGREGATED).body(Vec::new());
        let (code, _, body) = server.send(request.expect("the request is valid")).await;
        assert_eq!(code, 200);
        let groups: Value = serde_json::from_slice(&body).expect("discovery is JSON");
        let each = |value: &Value, field: &str| value[field].as_array().cloned().unwrap_or_default();
        let resources = each(&groups, "items").into_iter().flat_map(|group| each(&group, "versions"));
        let resources = resources.flat_map(|version| each(&version, "resources"));
        let wide = resources.filter(|resource| resource["scope"] == "Cluster");
        found.extend(wide.filter_map(|resource| Some(resource["resource"].as_str()?.to_owned())));
    }
    assert!(found.contains("validatingwebhookconfigurations"), "{found:?}");
    found
}
