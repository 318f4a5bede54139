//! Rules of services.

use serde_json::Value;

use super::{Errors, entries, ports, text};

pub(super) fn service(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    let kind = text(&spec["type"]);
    let is_headless = spec["clusterIP"] == "None";
    let list: Vec<(usize, &Value)> = entries(&spec["ports"]).collect();
    if list.is_empty() && !is_headless && kind != "ExternalName" {
        errors.required("spec.ports", "");
    }
    if kind == "ExternalName" && text(&spec["externalName"]).is_empty() {
        errors.required("spec.externalName", "");
    }
    let mut names = Vec::new();
    for (index, port) in &list {
        one_port(port, &format!("spec.ports[{index}]"), list.len() > 1, &mut names, errors);
    }
    let mut known = Vec::new();
    for (index, port) in &list {
        let key = (port["protocol"].clone(), port["port"].clone());
        if known.contains(&key) {
            let (protocol, number) = &key;
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":{protocol},\"AppProtocol\":null,\"Port\":{number},\"TargetPort\":0,\"NodePort\":0}}"
            );
            errors.duplicate(&format!("spec.ports[{index}]"), &shown);
        }
        known.push(key);
    }
    errors.labels("spec.selector", &spec["selector"]);
    errors.one_of("spec.sessionAffinity", &spec["sessionAffinity"], &["ClientIP", "None"]);
    errors.one_of("spec.type", &spec["type"], &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]);
    for (index, address) in entries(&spec["clusterIPs"]) {
        let address_text = text(address);
        if address_text != "None" && address_text.parse::<std::net::IpAddr>().is_err() {
            let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            errors.invalid(&format!("spec.clusterIPs[{index}]"), address, detail);
        }
    }
}

fn one_port<'a>(port: &'a Value, at: &str, several: bool, names: &mut Vec<&'a str>, errors: &mut Errors) {
    let name = text(&port["name"]);
    if name.is_empty() {
        if several {
            errors.required(&format!("{at}.name"), "");
        }
    } else {
        errors.name(&format!("{at}.name"), &port["name"], crate::admit::names::NameRule::Label);
        if names.contains(&name) {
            errors.duplicate(&format!("{at}.name"), &port["name"].to_string());
        }
        names.push(name);
    }
    let number = port["port"].as_i64().unwrap_or(0);
    errors.in_range(&format!("{at}.port"), &number.into(), 1, 65_535);
    errors.one_of(&format!("{at}.protocol"), &port["protocol"], ports::PROTOCOLS);
    let target = if port["targetPort"].is_null() { &Value::from(number) } else { &port["targetPort"] };
    ports::number_or_name(target, &format!("{at}.targetPort"), errors);
}
