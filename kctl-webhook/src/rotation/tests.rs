//! Simulates years of rotation. No replica and no API server has to know what the others have read.

use std::sync::Arc;

use tokio_rustls::rustls::{
    RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier},
    crypto::ring,
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};

use super::*;

const LEADER: ReplicaRole = ReplicaRole::Leader { trusted: true };
/// The leader while a configuration lacks an authority.
const UNTRUSTED: ReplicaRole = ReplicaRole::Leader { trusted: false };

fn names() -> Vec<String> {
    vec!["web.default.svc".into()]
}

fn start() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

/// Returns `true` if a client that trusts a bundle accepts a certificate at a time.
fn verifies(bundle: &str, pair: &Pair, now: Timestamp) -> bool {
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        roots.add(root.unwrap()).unwrap();
    }
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
    let served = CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap();
    let time = UnixTime::since_unix_epoch(std::time::Duration::from_secs(now.as_second().try_into().unwrap()));
    let name = ServerName::try_from("web.default.svc").unwrap();
    verifier.verify_server_cert(&served, &[], &name, &[], time).is_ok()
}

#[test]
fn served_certificates_are_trusted_for_three_years() {
    let mut stored = next_contents(None, &names(), start(), LEADER).unwrap().unwrap();
    let (mut known, mut served) = (vec![stored.bundle()], stored.pair().clone());
    let (mut authorities, mut certificates, mut now) = (1, 1, start());
    while now < start() + AUTHORITY_VALID * 3 {
        now += SignedDuration::from_hours(12);
        // A replica that reads late still serves the previous certificate, and an API server still trusts the previous
        // bundle.
        let before = (stored.bundle(), stored.pair().clone());
        if let Some(next) = next_contents(Some(&stored), &names(), now, LEADER).unwrap() {
            authorities += usize::from(next.authority_key != stored.authority_key);
            certificates += usize::from(next.pair != stored.pair);
            stored = next;
        }
        known.push(stored.bundle());
        for bundle in [&before.0, &stored.bundle()] {
            for pair in [&served, &before.1, stored.pair()] {
                assert!(verifies(bundle, pair, now), "at {now}");
            }
        }
        served = before.1;
        assert!(stored.state.authorities.len() <= 2, "at {now}");
    }
    // A certificate is issued every 60 days, and one more by each new authority.
    assert_eq!((authorities, certificates), (6, 23));
}

#[test]
fn new_authority_signs_after_it_is_trusted_everywhere() {
    let first = next_contents(None, &names(), start(), LEADER).unwrap().unwrap();
    let late = start() + (AUTHORITY_VALID - AUTHORITY_LEFT + DAY);
    // The served certificate still has to be valid at that time.
    let renewed = next_contents(Some(&first), &names(), start() + DAY * 80, LEADER).unwrap().unwrap();
    let renewed = next_contents(Some(&renewed), &names(), start() + DAY * 150, LEADER).unwrap().unwrap();
    let both = next_contents(Some(&renewed), &names(), late, LEADER).unwrap().unwrap();
    assert_eq!((both.state.authorities.len(), both.pair()), (2, renewed.pair()));
    // The configurations learn of it an hour later; the delay counts from then.
    assert_eq!(next_contents(Some(&both), &names(), late, UNTRUSTED).unwrap(), None);
    let trusted_at = late + SignedDuration::from_hours(1);
    let trusted = next_contents(Some(&both), &names(), trusted_at, LEADER).unwrap().unwrap();
    assert_eq!((trusted.bundle(), trusted.pair()), (both.bundle(), both.pair()));
    let cases = [
        (TRUST_PROPAGATION_DELAY - SignedDuration::from_secs(1), LEADER, false),
        (TRUST_PROPAGATION_DELAY, UNTRUSTED, false),
        (TRUST_PROPAGATION_DELAY, ReplicaRole::Standby, false),
        (TRUST_PROPAGATION_DELAY, LEADER, true),
    ];
    for (wait, role, signs) in cases {
        let next = next_contents(Some(&trusted), &names(), trusted_at + wait, role).unwrap();
        assert_eq!(next.is_some_and(|next| next.pair() != both.pair()), signs, "{wait:?} {role:?}");
    }
    // A configuration that lacks it once, such as a new one, resets the delay.
    let end = trusted_at + TRUST_PROPAGATION_DELAY;
    let untrusted = next_contents(Some(&trusted), &names(), end, UNTRUSTED).unwrap().unwrap();
    let again = next_contents(Some(&untrusted), &names(), end, LEADER).unwrap().unwrap();
    assert_eq!(again.pair(), both.pair());
}

#[test]
fn any_replica_repairs_but_only_the_leader_renews() {
    let stored = next_contents(None, &names(), start(), ReplicaRole::Standby).unwrap().unwrap();
    let other = vec!["other.default.svc".to_owned()];
    let cases = [
        ("works", names(), DAY, false, false),
        ("is to be renewed", names(), CERTIFICATE_VALID - DAY * 29, false, true),
        ("has run out", names(), CERTIFICATE_VALID, true, true),
        ("is for another name", other, DAY, true, true),
    ];
    for (case, names, later, by_standby, by_leader) in cases {
        let now = start() + later;
        assert_eq!(
            next_contents(Some(&stored), &names, now, ReplicaRole::Standby).unwrap().is_some(),
            by_standby,
            "{case}"
        );
        assert_eq!(next_contents(Some(&stored), &names, now, LEADER).unwrap().is_some(), by_leader, "{case}");
    }
}

#[test]
fn added_name_keeps_the_authority_and_old_names() {
    let (old, new) = (names(), vec!["other.default.svc".to_owned()]);
    let first = next_contents(None, &old, start(), LEADER).unwrap().unwrap();
    let both = next_contents(Some(&first), &new, start() + DAY, ReplicaRole::Standby).unwrap().unwrap();
    assert_eq!(both.bundle(), first.bundle());
    assert_eq!(both.state.serving.names, [new.clone(), old.clone()].concat());
    assert!(verifies(&first.bundle(), both.pair(), start() + DAY));
    // A replica of the old version changes nothing.
    for names in [&old, &new] {
        assert_eq!(next_contents(Some(&both), names, start() + DAY, LEADER).unwrap(), None);
    }
    let renewed = next_contents(Some(&both), &new, start() + DAY * 70, LEADER).unwrap().unwrap();
    assert_eq!(renewed.state.serving.names, new);
}

#[test]
fn added_name_waits_for_a_trusted_authority() {
    let first = next_contents(None, &names(), start(), LEADER).unwrap().unwrap();
    let mut both = first.clone();
    both.authority_key = add_authority(&mut both.state, start() + DAY).unwrap().key;
    let (new, now) = (vec!["other.default.svc".to_owned()], start() + DAY);
    for (role, signs) in [(ReplicaRole::Standby, false), (UNTRUSTED, false), (LEADER, true)] {
        let next = next_contents(Some(&both), &new, now, role).unwrap();
        assert_eq!(next.is_some(), signs, "{role:?}");
        assert!(next.is_none_or(|next| next.bundle() == both.bundle()));
    }
}

#[test]
fn broken_authority_key_is_replaced_without_interruption() {
    let make = || next_contents(None, &names(), start(), LEADER).unwrap().unwrap();
    let (first, now) = (make(), start() + DAY);
    for key in ["x".to_owned(), make().authority_key] {
        let broken = Stored { authority_key: key, ..first.clone() };
        assert_eq!(next_contents(Some(&broken), &names(), now, ReplicaRole::Standby).unwrap(), None);
        let both = next_contents(Some(&broken), &names(), now, LEADER).unwrap().unwrap();
        assert_eq!((both.state.authorities.len(), both.pair()), (2, first.pair()));
        let trusted = next_contents(Some(&both), &names(), now, LEADER).unwrap().unwrap();
        let later = now + TRUST_PROPAGATION_DELAY;
        let signed = next_contents(Some(&trusted), &names(), later, LEADER).unwrap().unwrap();
        assert!(verifies(&both.bundle(), signed.pair(), later));
    }
}

#[test]
fn repeatedly_broken_key_keeps_the_serving_authority() {
    let first = next_contents(None, &names(), start(), LEADER).unwrap().unwrap();
    let mut stored = first.clone();
    for minutes in 1..=6 {
        let now = start() + SignedDuration::from_mins(minutes);
        let broken = Stored { authority_key: "x".to_owned(), ..stored };
        stored = next_contents(Some(&broken), &names(), now, LEADER).unwrap().unwrap();
        assert_eq!((stored.state.authorities.len(), stored.pair()), (2, first.pair()));
        assert!(verifies(&stored.bundle(), first.pair(), now), "after {minutes} minutes");
    }
}

#[test]
fn names_of_a_certificate_are_bounded() {
    let name = |number: usize| format!("web-{number}.default.svc");
    let mut stored = next_contents(None, &[name(0)], start(), LEADER).unwrap().unwrap();
    for number in 1..=NAMES_LEN_MAX {
        stored = next_contents(Some(&stored), &[name(number)], start(), ReplicaRole::Standby).unwrap().unwrap();
    }
    let served = &stored.state.serving.names;
    assert_eq!((served.len(), served.contains(&name(0)), served.contains(&name(1))), (NAMES_LEN_MAX, false, true));
}

#[test]
fn stored_state_is_read_unless_it_was_modified() {
    let stored = next_contents(None, &names(), start(), LEADER).unwrap().unwrap();
    let fields: BTreeMap<String, Vec<u8>> =
        stored.fields().unwrap().into_iter().map(|(name, value)| (name, value.into_bytes())).collect();
    assert!(Stored::read(&fields).is_some_and(|read| read == stored));
    for field in FIELDS {
        let mut broken = fields.clone();
        broken.remove(field);
        assert!(Stored::read(&broken).is_none(), "{field}");
    }
    for field in ["tls.crt", "ca.crt", "state.json"] {
        let mut broken = fields.clone();
        broken.insert(field.into(), b"x".to_vec());
        assert!(Stored::read(&broken).is_none(), "{field}");
    }
}

#[test]
fn debug_output_leaves_out_private_keys() {
    let stored = next_contents(None, &names(), start(), LEADER).unwrap().unwrap();
    assert!(stored.fields().unwrap()["ca.key"].contains("PRIVATE KEY"));
    assert!(!format!("{stored:?}").contains("PRIVATE KEY"));
}
