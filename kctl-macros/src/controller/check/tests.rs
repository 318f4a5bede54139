//! Messages about options of `#[controller]`: their exact words, and that one mistake is one message.

use quote::quote;

/// Returns the messages about a controller with these options, in one line each.
fn messages(options: &str) -> Vec<String> {
    let item = quote!(
        async fn pods(_config: Arc<ConfigMap>, _cx: Context<pods>) -> Result<Action> {
            todo()
        }
    );
    let text = crate::controller::expand(options.parse().unwrap(), &item).to_string();
    let messages = text.split("compile_error ! { ").skip(1).filter_map(|rest| rest.split(" }").next());
    messages.map(|text| text.trim_matches('"').replace("\\n", " / ").replace("\\\"", "\"")).collect()
}

#[test]
fn verbs_in_other_forms_get_help() {
    let all = "a rule lists its verbs: all verbs would allow more than is needed / help: ";
    let none = "neither a verb nor an option / help: ";
    for (options, expected) in [
        ("owns = Pod(*)", format!("{all}write `owns = Pod`, which may create, update, patch, apply and delete, or list the verbs that are used: `owns = Pod(create, delete)` / code: K0015")),
        ("owns = Pod(create, *)", format!("{all}write `owns = Pod`, ")),
        ("owns = Pod(All)", format!("{all}write `owns = Pod`, ")),
        ("reads = Node(*)", format!("{all}write `reads = Node` to read only, or list the verbs that are used, for example `reads = Node(patch)`")),
        ("primary(*)", format!("{all}write the verbs that are used, for example `primary(patch)`")),
        ("owns = Pod(\"create\")", format!("{none}write `owns = Pod(create)`")),
        ("owns = Pod(\"create,delete\")", format!("{none}write `owns = Pod(create, delete)`")),
        ("owns = Pod(create | Delete)", format!("{none}write `owns = Pod(create, delete)`")),
        ("owns = Pod([create, patch])", format!("{none}write `owns = Pod(create, patch)`")),
        ("owns = Pod(verbs = [create, patch])", format!("{none}write `owns = Pod(create, patch)`")),
        ("owns = Pod(verbs = \"*\")", format!("{none}write for example `owns = Pod(create)`")),
        ("owns = Pod(create = true)", format!("{none}write `owns = Pod(create)`")),
        ("owns = Pod(status / patch)", format!("{none}write `owns = Pod(status, patch)`")),
        ("owns = Pod(status(patch))", "`status` takes no parentheses / help: write `owns = Pod(status)`; `patch` next to it would be a verb of the object itself".into()),
        ("reads = Secret(\"live\")", format!("{none}write `reads = Secret(live)`")),
        ("reads = Secret(live = true)", format!("{none}write `reads = Secret(live)`")),
        ("reads = Secret(live = cluster)", format!("{none}write `reads = Secret(live(cluster))`")),
        ("reads = Secret(optional = true)", format!("{none}write `reads = Secret(optional)`")),
        ("owns = Pod(metadata = true)", format!("{none}write `owns = Pod(metadata)`")),
        ("owns = Pod(block_owner_deletion = true)", format!("{none}write `owns = Pod(block_owner_deletion)`")),
        ("reads = Pod(metdata)", "`metdata` is not a verb / help: did you mean `metadata`?".into()),
        ("primary(read_only = true)", format!("{none}write `primary(read_only)`")),
        ("reads = Secret(Optional)", "`Optional` is not a verb / help: did you mean `optional`?".into()),
        ("reads = Secret(optional, optional)", "`optional` is given twice / help: remove one of them".into()),
        ("reads = Secret(live, optional)", "`Secret` is read live and has no cache: `optional` has no effect / help: remove `live` or `optional`; a live read of a kind that is not served fails with 404".into()),
        ("primary(optional)", "a primary is not optional: without it there is nothing to reconcile / help: remove it".into()),
        ("reads = Secret(Live)", "`Live` is not a verb / help: did you mean `live`?".into()),
        ("reads = Secret(live(everywhere))", "`live` takes no parentheses / help: write `live` or `live(cluster)`".into()),
        ("owns = Pod(Create)", "`Create` is not a verb / help: did you mean `create`?".into()),
        ("primary(\"patch\")", format!("{none}write `primary(patch)`")),
        ("primary(\"update\")", format!("{none}write for example `primary(patch)`")),
        ("primary(update = true)", format!("{none}write for example `primary(patch)`")),
        ("primary(write)", "`write` is not a verb / help: write `primary(patch, delete)`".into()),
        ("primary(evict)", "`evict` is not a verb / help: no operation of kctl on the primary uses it: write the rule in `rbac(rule())`, and use `cx.client()`".into()),
        ("primary(verbs = [scale])", format!("{none}write `primary(scale)`")),
        ("reads = Pod(bind)", "`bind` is not a verb / help: write `reads = Pod(binding)`; the verb `bind` of roles is written in `rbac(rule())`".into()),
        ("owns = Pod(bind)", "`bind` is not a verb / help: no operation of kctl on owned objects uses it: write the rule in `rbac(rule())`, and use `cx.client()`".into()),
        ("reads = Pod(replace)", "`replace` is not a verb / help: write `reads = Pod(update)`".into()),
        ("reads = Pod(logs)", "`logs` is not a verb / help: no operation of kctl uses `logs`: write the rule in `rbac(rule())`".into()),
        ("owns = Pod(evict)", "`evict` is not a verb / help: write `owns = Pod(eviction)`".into()),
        ("owns = Pod(write)", "`write` is not a verb / help: write `owns = Pod(create, update, patch, delete)`".into()),
        ("owns = Pod(exec)", "`exec` is not a verb / help: no operation of kctl uses `exec`: write the rule in `rbac(rule())`, and use `cx.client()`".into()),
        ("primary(finalizers)", "`finalizers` is not a verb / help: a declared finalizer includes this permission: remove it".into()),
        ("owns = Pod, Secret", "`#[controller]` has no option `Secret` / help: name the relation of each kind: `owns = Secret`, `watches = Secret(map = f)` or `reads = Secret`".into()),
        ("owns = Pod, as = PodMeta", "`#[controller]` has no option `as` / help: write it in the parentheses of a kind: `reads = Kind(as = …)`".into()),
        ("reads = Pod, on = Edge", "`#[controller]` has no option `on` / help: write it in the parentheses of a kind: `reads = Kind(on = …)`".into()),
        ("rbac(*)", "a rule is a value of the type `PolicyRule` / help: write `rbac(rule())`".into()),
        ("rbac(verbs = \"*\")", "a rule is a value of the type `PolicyRule` / help: write `rbac(rule())`".into()),
    ] {
        let messages = messages(options);
        assert!(messages.iter().any(|text| text.starts_with(&expected)), "{options}: {expected}\n{messages:?}");
        assert_eq!(messages.len(), 1, "{options}: one mistake is one message: {messages:?}");
    }
}

#[test]
fn names_that_events_reject_are_reported() {
    let check = |name: String, expected: Option<&str>| {
        let found = messages(&format!("name = \"{name}\""));
        assert_eq!(found.len(), usize::from(expected.is_some()), "{found:?}");
        let Some(help) = expected else { return };
        let start = "`name` has 1 to 128 bytes: API servers reject its Events otherwise / help: ";
        assert!(found[0].starts_with(&format!("{start}{help}")) && found[0].ends_with("K0026"), "{found:?}");
    };
    check(String::new(), Some("write a name, or remove the option"));
    check("n".repeat(128), None);
    check("n".repeat(129), Some("write a shorter name"));
}

#[test]
fn invalid_selectors_are_reported_with_an_example() {
    for (options, expected) in [
        (
            "owns = Pod(selector = \"app in web)\")",
            "`app in web)` is not a label selector / help: write for example `selector = ",
        ),
        ("primary(selector = \"app=web,\")", "`app=web,` is not a label selector / help: "),
        (
            "reads = Node(fields = \"spec.nodeName\")",
            "`spec.nodeName` is not a field selector / help: write for example `fields = ",
        ),
    ] {
        let messages = messages(options);
        assert!(messages.len() == 1 && messages[0].starts_with(expected), "{options}: {messages:?}");
    }
    for options in
        ["owns = Pod(selector = \"app in (web)\")", "owns = Pod(selector = SELECTOR)", "owns = Pod(fields = \"a!=b\")"]
    {
        assert!(messages(options).is_empty(), "{options}");
    }
}

#[test]
fn options_and_flags_are_given_once() {
    let twice = |word| format!("`{word}` is given twice / help: remove one of them / code: K0022");
    let live = "`live` is given twice / help: write `live` for the namespace of the primary, or `live(cluster)` for all namespaces / code: K0022";
    for (options, expected) in [
        ("reads = Secret(live, live)", live.to_owned()),
        ("reads = Secret(live, live(cluster))", live.to_owned()),
        ("reads = Secret(live(cluster), live)", live.to_owned()),
        ("reads = Secret(live(cluster), live(cluster))", live.to_owned()),
        ("owns = Pod(block_owner_deletion, block_owner_deletion)", twice("block_owner_deletion")),
        ("primary(read_only, read_only)", twice("read_only")),
        ("backoff(\"5ms\", max = \"1s\", max = \"2s\")", twice("max")),
        ("backoff(\"5ms\", max = \"1 s\", max = \"2s\")", twice("max")),
        (
            "backoff(\"5ms\", \"1000s\")",
            "`backoff` has one first wait / help: write `backoff(\"5ms\", max = \"1000s\")` / code: K0019".into(),
        ),
        (
            "rbac(rule(), on = Edge, on = Other)",
            "`on` is given twice: the rules of one `rbac` are on one cluster / help: write an `rbac(…, on = …)` for each cluster / code: K0022".into(),
        ),
    ] {
        let messages = messages(options);
        assert!(messages.contains(&expected), "{options}: {messages:?}");
        let is_duration = |text: &&String| text.contains("K0020");
        assert_eq!(messages.iter().filter(|text| !is_duration(text)).count(), 1, "{options}: {messages:?}");
    }
}

#[test]
fn quoted_values_are_in_the_help() {
    let all = "remove `namespaces`: without it, all namespaces are watched / code: K0027";
    for (options, expected) in [
        ("namespaces = \"*\"", format!("`namespaces` is a list / help: {all}")),
        ("namespaces = \"\"", format!("`namespaces` is a list / help: {all}")),
        (
            "namespaces = \"a, b\"",
            "`namespaces` is a list / help: write `namespaces = [\"a\", \"b\"]` / code: K0027".into(),
        ),
        ("namespaces = [\"*\"]", format!("`*` is not the name of a namespace / help: {all}")),
        ("retries = \"3\"", "`retries` is a number / help: write `retries = 3` / code: K0018".into()),
        ("retries = \"0\"", "`retries` is a number / help: write `retries = 0` / code: K0018".into()),
        ("retries = \"many\"", "`retries` is a number / help: write `retries = 4` / code: K0018".into()),
        ("concurrency = \"0\"", "`concurrency` is a number / help: write `concurrency = 4` / code: K0018".into()),
    ] {
        assert_eq!(messages(options), [expected], "{options}");
    }
}

#[test]
fn kinds_declared_twice_get_the_operation_to_use() {
    let twice = "`Pod` is declared twice / help: ";
    let primary = "`ConfigMap` is the primary: it is cached and triggers already / help: ";
    for (options, expected) in [
        (
            "owns = Pod, reads = Pod",
            format!("{twice}name it once: `owns = K(map = f)` has both triggers / code: K0021"),
        ),
        (
            "owns = Pod, reads = Pod(live)",
            format!("{twice}remove the one that is `live`, and read the cache by `cx.store::<Pod>()` / code: K0021"),
        ),
        (
            "reads = Pod(live(cluster)), reads = Pod",
            format!("{twice}remove the one that is `live`, and read the cache"),
        ),
        ("reads = ConfigMap", format!("{primary}remove it, or write `primary(…)`")),
        (
            "reads = ConfigMap(live)",
            format!("{primary}write `primary(get)`, and read it from the API server by `cx.get()`"),
        ),
    ] {
        let messages = messages(options);
        assert!(messages.len() == 1 && messages[0].starts_with(&expected), "{options}: {messages:?}");
    }
}

#[test]
fn mapper_of_the_primary_is_one_error() {
    let expected = "a primary enqueues its own key: `map` would never be called / help: remove it; `when = f` chooses the changes that count / code: K0028";
    for options in ["primary(map = all)", "primary(map = |_, _, _| true)", "primary(patch, map = \"all\")"] {
        let messages = messages(options);
        assert!(messages.len() == 1 && messages[0].starts_with(expected), "{options}: {messages:?}");
    }
}

#[test]
fn all_verbs_that_do_not_fit_are_reported() {
    let whole = |verb| format!("`{verb}` needs a whole `Pod`, not its metadata alone");
    let not_owned = |verb| format!("`{verb}` is not an operation on owned objects");
    let not_of_primary = |verb| format!("`{verb}` is not an operation on the primary");
    let not_live = |verb| format!("`Secret` is read live, one object at a time: `{verb}` has no operation");
    let not_read = |verb| format!("a primary that is only read has no verb `{verb}`");
    for (options, expected) in [
        ("owns = Pod(metadata, create, patch, update)", [whole("create"), whole("update")]),
        ("owns = Pod(binding, create, token)", [not_owned("binding"), not_owned("token")]),
        ("reads = Secret(live, get, patch, list)", [not_live("patch"), not_live("list")]),
        ("reads = Secret(live(cluster), delete, on = Edge, apply)", [not_live("delete"), not_live("apply")]),
        ("primary(create, get, update)", [not_of_primary("create"), not_of_primary("update")]),
        ("primary(apply, deletecollection)", [not_of_primary("apply"), not_of_primary("deletecollection")]),
        ("primary(eviction, scale, binding)", [not_of_primary("eviction"), not_of_primary("binding")]),
        ("primary(token, read_only, create)", [not_read("token"), not_read("create")]),
        ("primary(read_only, get, patch, delete)", [not_read("patch"), not_read("delete")]),
    ] {
        let messages = messages(options);
        let found: Vec<_> = messages.iter().filter_map(|text| text.split(" / ").next()).collect();
        assert_eq!(found, expected, "{options}");
    }
}

#[test]
fn several_operations_get_help_for_several_functions() {
    let item = quote!(
        fn health(_workload: &Workload) -> Result<bool> {
            Ok(true)
        }
    );
    let two = "a function answers one operation\\nhelp: write a function for each, with `#[interpreter(op = InterpretHealth)]` and `#[interpreter(op = Retain)]`";
    let one = "is not an operation\\nhelp: write `op = InterpretHealth`";
    for (options, expected) in [
        ("op = [InterpretHealth, Retain]", two),
        ("op = (InterpretHealth, Retain)", two),
        ("op = InterpretHealth | Retain", two),
        ("op = InterpretHealth(Workload)", one),
        ("op = Operation::InterpretHealth", one),
    ] {
        let text = crate::interpreter::expand(options.parse().unwrap(), &item).to_string();
        assert!(text.contains(expected), "{options}: {text}");
    }
}
