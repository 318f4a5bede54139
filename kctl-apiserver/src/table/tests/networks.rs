//! Rows of Services, endpoints and Ingresses, as kube-apiserver returned them.

use serde_json::json;

use super::check;

#[test]
fn a_service_shows_addresses_by_its_type() {
    check(
        ("", "Service"),
        &json!(
            {"metadata": {"name": "svc1"}, "spec": {"ports": [{"name": "a", "protocol": "TCP", "port": 80},
            {"name": "b", "protocol": "UDP", "port": 53}], "selector": {"a": "b", "b": "c"},
            "clusterIP": "10.96.233.226", "type": "ClusterIP"}}
        ),
        &json!(["svc1", "ClusterIP", "10.96.233.226", "<none>", "80/TCP,53/UDP", "59s", "a=b,b=c"]),
    );
    check(
        ("", "Service"),
        &json!(
            {"metadata": {"name": "svc2"}, "spec": {"selector": {"a": "b"}, "clusterIP": "None",
            "type": "ClusterIP"}}
        ),
        &json!(["svc2", "ClusterIP", "None", "<none>", "<none>", "59s", "a=b"]),
    );
    check(
        ("", "Service"),
        &json!(
            {"metadata": {"name": "svc3"}, "spec": {"ports": [{"name": "a", "protocol": "TCP", "port": 80,
            "nodePort": 31290}], "clusterIP": "10.96.195.24", "type": "NodePort", "externalIPs": ["1.2.3.4",
            "1.2.3.5"]}}
        ),
        &json!(["svc3", "NodePort", "10.96.195.24", "1.2.3.4,1.2.3.5", "80:31290/TCP", "59s", "<none>"]),
    );
    check(
        ("", "Service"),
        &json!(
            {"metadata": {"name": "svc4"}, "spec": {"ports": [{"name": "a", "protocol": "TCP", "port": 80,
            "nodePort": 30757}, {"name": "b", "protocol": "UDP", "port": 53, "nodePort": 31044}],
            "clusterIP": "10.96.252.66", "type": "LoadBalancer"}}
        ),
        &json!(["svc4", "LoadBalancer", "10.96.252.66", "<pending>", "80:30757/TCP,53:31044/UDP", "59s", "<none>"]),
    );
}

#[test]
fn service_shows_load_balancer_and_own_addresses() {
    check(
        ("", "Service"),
        &json!(
            {"metadata": {"name": "svc5"}, "spec": {"ports": [{"name": "a", "protocol": "TCP", "port": 80,
            "nodePort": 31756}, {"name": "b", "protocol": "UDP", "port": 53, "nodePort": 32091}],
            "clusterIP": "10.96.171.18", "type": "LoadBalancer"},
            "status": {"loadBalancer": {"ingress": [{"ip": "9.9.9.9"}, {"ip": "8.8.8.8"},
            {"hostname": "a.example"}]}}}
        ),
        &json!([
            "svc5",
            "LoadBalancer",
            "10.96.171.18",
            "8.8.8.8,9.9.9.9,a.example",
            "80:31756/TCP,53:32091/UDP",
            "59s",
            "<none>"
        ]),
    );
    check(
        ("", "Service"),
        &json!(
            {"metadata": {"name": "svc6"}, "spec": {"ports": [{"name": "a", "protocol": "TCP", "port": 80,
            "nodePort": 32675}], "clusterIP": "10.96.143.65", "type": "LoadBalancer", "externalIPs": ["1.2.3.6"]},
            "status": {"loadBalancer": {"ingress": [{"hostname": "a-very-long-name.example.com"}]}}}
        ),
        &json!([
            "svc6",
            "LoadBalancer",
            "10.96.143.65",
            "a-very-long-name.example.com,1.2.3.6",
            "80:32675/TCP",
            "59s",
            "<none>"
        ]),
    );
    check(
        ("", "Service"),
        &json!({"metadata": {"name": "svc7"}, "spec": {"type": "ExternalName", "externalName": "db.example"}}),
        &json!(["svc7", "ExternalName", "<none>", "db.example", "<none>", "59s", "<none>"]),
    );
    check(
        ("", "Service"),
        &json!(
            {"metadata": {"name": "svc8"}, "spec": {"ports": [{"name": "a", "protocol": "TCP", "port": 80}],
            "clusterIP": "10.96.97.134", "type": "ClusterIP", "externalIPs": ["1.2.3.7"]}}
        ),
        &json!(["svc8", "ClusterIP", "10.96.97.134", "1.2.3.7", "80/TCP", "59s", "<none>"]),
    );
}

#[test]
fn endpoints_show_three_and_how_many_more() {
    check(("", "Endpoints"), &json!({"metadata": {"name": "ep1"}}), &json!(["ep1", "<none>", "59s"]));
    check(
        ("", "Endpoints"),
        &json!(
            {"metadata": {"name": "ep2"}, "subsets": [{"addresses": [{"ip": "10.1.1.1"}, {"ip": "10.1.1.2"}],
            "ports": [{"name": "a", "port": 80, "protocol": "TCP"}, {"name": "b", "port": 81, "protocol": "TCP"}]},
            {"addresses": [{"ip": "10.1.1.3"}]}]}
        ),
        &json!(["ep2", "10.1.1.1:80,10.1.1.2:80,10.1.1.1:81 + 2 more...", "59s"]),
    );
    check(
        ("", "Endpoints"),
        &json!(
            {"metadata": {"name": "ep3"}, "subsets": [{"addresses": [{"ip": "10.1.1.1"}, {"ip": "10.1.1.2"}],
            "ports": [{"port": 80, "protocol": "TCP"}]}]}
        ),
        &json!(["ep3", "10.1.1.1:80,10.1.1.2:80", "59s"]),
    );
    check(
        ("", "Endpoints"),
        &json!(
            {"metadata": {"name": "ep4"}, "subsets": [{"notReadyAddresses": [{"ip": "10.1.1.1"}],
            "ports": [{"port": 80, "protocol": "TCP"}]}]}
        ),
        &json!(["ep4", "", "59s"]),
    );
    check(
        ("", "Endpoints"),
        &json!({"metadata": {"name": "ep5"}, "subsets": [{"addresses": [{"ip": "10.1.1.1"}, {"ip": "10.1.1.2"}]}]}),
        &json!(["ep5", "10.1.1.1,10.1.1.2", "59s"]),
    );
}

#[test]
fn an_ingress_shows_three_hosts() {
    check(
        ("networking.k8s.io", "Ingress"),
        &json!({"metadata": {"name": "i1"}}),
        &json!(["i1", "<none>", "*", "", "80", "59s"]),
    );
    check(
        ("networking.k8s.io", "Ingress"),
        &json!(
            {"metadata": {"name": "i2"}, "spec": {"ingressClassName": "nginx", "tls": [{"hosts": ["a"]}],
            "rules": [{"host": "a.x"}, {"host": "b.x"}, {"host": "c.x"}, {"host": "d.x"}, {"host": "e.x"}]},
            "status": {"loadBalancer": {"ingress": [{"ip": "9.9.9.9"}, {"ip": "8.8.8.8"},
            {"hostname": "long-name.example"}]}}}
        ),
        &json!(["i2", "nginx", "a.x,b.x,c.x + 2 more...", "8.8.8.8,9.9.9.9,long-name.example", "80, 443", "59s"]),
    );
    check(
        ("networking.k8s.io", "Ingress"),
        &json!(
            {"metadata": {"name": "i3"}, "spec": {"rules": [{}, {"host": "b.x"}]},
            "status": {"loadBalancer": {"ingress": [{"hostname": "a.b"}]}}}
        ),
        &json!(["i3", "<none>", "b.x", "a.b", "80", "59s"]),
    );
    check(
        ("networking.k8s.io", "Ingress"),
        &json!(
            {"metadata": {"name": "i4", "annotations": {"kubernetes.io/ingress.class": "old"}},
            "spec": {"rules": [{"host": "b.x"}]}}
        ),
        &json!(["i4", "<none>", "b.x", "", "80", "59s"]),
    );
}

#[test]
fn a_network_policy_shows_its_selector() {
    check(
        ("networking.k8s.io", "NetworkPolicy"),
        &json!({"metadata": {"name": "np1"}}),
        &json!(["np1", "<none>", "59s"]),
    );
    check(
        ("networking.k8s.io", "NetworkPolicy"),
        &json!(
            {"metadata": {"name": "np2"}, "spec": {"podSelector": {"matchLabels": {"app": "x", "b": "c"},
            "matchExpressions": [{"key": "t", "operator": "In", "values": ["b", "a"]}, {"key": "u",
            "operator": "NotIn", "values": ["a"]}, {"key": "v", "operator": "Exists"}, {"key": "w",
            "operator": "DoesNotExist"}]}}}
        ),
        &json!(["np2", "app=x,b=c,t in (a,b),u notin (a),v,!w", "59s"]),
    );
}

#[test]
fn the_default_ingress_class_says_so() {
    check(
        ("networking.k8s.io", "IngressClass"),
        &json!({"metadata": {"name": "table-ic1"}, "spec": {"controller": "x/y"}}),
        &json!(["table-ic1", "x/y", "<none>", "59s"]),
    );
    check(
        ("networking.k8s.io", "IngressClass"),
        &json!(
            {"metadata": {"name": "table-ic2"}, "spec": {"controller": "x/y", "parameters": {"apiGroup": "g.io",
            "kind": "K", "name": "n", "scope": "Cluster"}}}
        ),
        &json!(["table-ic2", "x/y", "K.g.io/n", "59s"]),
    );
    check(
        ("networking.k8s.io", "IngressClass"),
        &json!(
            {"metadata": {"name": "table-ic3",
            "annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}}, "spec": {"controller": "x/y",
            "parameters": {"kind": "ConfigMap", "name": "n", "scope": "Namespace", "namespace": "q"}}}
        ),
        &json!(["table-ic3 (default)", "x/y", "ConfigMap/n", "59s"]),
    );
}

#[test]
fn an_address_has_a_cell_more_than_columns() {
    check(
        ("networking.k8s.io", "IPAddress"),
        &json!(
            {"metadata": {"name": "10.99.0.1"}, "spec": {"parentRef": {"resource": "services", "namespace": "table",
            "name": "s"}}}
        ),
        &json!(["10.99.0.1", "services/table/s", "59s"]),
    );
    check(
        ("networking.k8s.io", "IPAddress"),
        &json!(
            {"metadata": {"name": "10.99.0.2"}, "spec": {"parentRef": {"group": "g.io", "resource": "gs",
            "name": "s"}}}
        ),
        &json!(["10.99.0.2", "gs.g.io/s", "59s"]),
    );
}

#[test]
fn a_service_cidr_shows_its_ranges() {
    check(
        ("networking.k8s.io", "ServiceCIDR"),
        &json!({"metadata": {"name": "table-cidr"}, "spec": {"cidrs": ["10.98.0.0/24", "fd00:98::/112"]}}),
        &json!(["table-cidr", "10.98.0.0/24,fd00:98::/112", "59s"]),
    );
}

#[test]
fn an_endpoint_slice_shows_three_ports_and_addresses() {
    check(
        ("discovery.k8s.io", "EndpointSlice"),
        &json!({"metadata": {"name": "es1"}, "addressType": "IPv4", "endpoints": null, "ports": null}),
        &json!(["es1", "IPv4", "<unset>", "<unset>", "59s"]),
    );
    check(
        ("discovery.k8s.io", "EndpointSlice"),
        &json!(
            {"metadata": {"name": "es2"}, "addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.0"]},
            {"addresses": ["10.0.0.1"]}, {"addresses": ["10.0.0.2"]}, {"addresses": ["10.0.0.3"]},
            {"addresses": ["10.0.0.4"]}], "ports": [{"name": "p0", "protocol": "TCP", "port": 80}, {"name": "p1",
            "protocol": "TCP", "port": 81}, {"name": "p2", "protocol": "TCP", "port": 82}, {"name": "p3",
            "protocol": "TCP", "port": 83}, {"name": "p4", "protocol": "TCP", "port": 84}]}
        ),
        &json!(["es2", "IPv4", "80,81,82 + 2 more...", "10.0.0.0,10.0.0.1,10.0.0.2 + 2 more...", "59s"]),
    );
    check(
        ("discovery.k8s.io", "EndpointSlice"),
        &json!(
            {"metadata": {"name": "es3"}, "addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}],
            "ports": [{"name": "", "protocol": "TCP"}]}
        ),
        &json!(["es3", "IPv4", "<unset>", "10.0.0.1", "59s"]),
    );
    check(
        ("discovery.k8s.io", "EndpointSlice"),
        &json!(
            {"metadata": {"name": "es4"}, "addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1",
            "10.0.0.2"]}, {"addresses": ["10.0.0.3", "10.0.0.4"]}], "ports": [{"name": "http", "protocol": "UDP",
            "port": 80}]}
        ),
        &json!(["es4", "IPv4", "80", "10.0.0.1,10.0.0.2,10.0.0.3 + 1 more...", "59s"]),
    );
}
