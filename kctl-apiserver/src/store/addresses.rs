//! Cluster IPs of Services: each Service gets its own number in 10.96.0.0/12, kubeadm's default range.
//!
//! Numbers only increase: the address of a deleted Service is not reused until the server is restarted. A client may
//! also request a specific address for a Service, which may be outside of the range.

use std::net::Ipv4Addr;

use serde_json::Value;

/// The second byte of the first address.
const SECOND: u8 = 96;
/// The number of values of the second byte in a /12 range. 10.96.0.0/12 ends at 10.111.255.255.
const N_SECONDS: u8 = 16;

/// Returns the address with a number. Repeats after 2^20 numbers. Number 1 is 10.96.0.1, which the Service `kubernetes`
/// has.
pub(super) fn address(n: u32) -> String {
    let [.., second, third, fourth] = n.to_be_bytes();
    Ipv4Addr::new(10, SECOND + second % N_SECONDS, third, fourth).to_string()
}

/// Returns the number of a Service's address, or `None` if it has no address in the range.
pub(super) fn number_of(service: &Value) -> Option<u32> {
    let address: Ipv4Addr = service["spec"]["clusterIP"].as_str()?.parse().ok()?;
    let [10, second, third, fourth] = address.octets() else { return None };
    let second = second.checked_sub(SECOND).filter(|second| *second < N_SECONDS)?;
    Some(u32::from_be_bytes([0, second, third, fourth]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{ApiServer, test_folder::TestFolder};

    #[tokio::test]
    async fn service_addresses_remain_unique_after_a_restart() {
        let folder = TestFolder::new("addresses");
        let services = "/api/v1/namespaces/default/services";
        let service = |name: &str| json!({ "metadata": { "name": name }, "spec": { "ports": [{ "port": 80 }] } });
        let server = ApiServer::new();
        server.persist_in(&folder).unwrap();
        server.succeed("POST", services, &service("gone")).await;
        server.succeed("POST", services, &service("stays")).await;
        server.succeed("DELETE", &format!("{services}/gone"), &json!({})).await;
        drop(server);
        let restarted = ApiServer::new();
        restarted.persist_in(&folder).unwrap();
        restarted.succeed("POST", services, &service("new")).await;
        let address =
            |name: &str| restarted.object("", "services", "default", name).unwrap()["spec"]["clusterIP"].clone();
        let (stays, new) = (address("stays"), address("new"));
        assert!(stays != new && new.is_string(), "{stays} {new}");
    }

    #[test]
    fn number_of_an_address_converts_back_to_it() {
        for n in [1, 255, 256, 65_536, 0x000f_ffff] {
            assert_eq!(number_of(&json!({ "spec": { "clusterIP": address(n) } })), Some(n), "{}", address(n));
        }
        for other in [json!("None"), json!("10.95.0.1"), json!("10.112.0.1"), json!("192.0.2.1"), json!(null)] {
            assert_eq!(number_of(&json!({ "spec": { "clusterIP": other } })), None, "{other}");
        }
    }
}
