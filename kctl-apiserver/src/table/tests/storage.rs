//! Rows of volumes and classes, as kube-apiserver returned them.

use serde_json::json;

use super::check;

#[test]
fn a_volume_shows_its_claim() {
    check(
        ("", "PersistentVolume"),
        &json!(
            {"metadata": {"name": "table-pv2", "deletionTimestamp": "2026-11-21T06:16:42Z"},
            "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"],
            "claimRef": {"namespace": "table", "name": "c"}, "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": "fast", "volumeMode": "Block", "volumeAttributesClassName": "gold"},
            "status": {"phase": "Failed", "reason": "why"}}
        ),
        &json!(["table-pv2", "1Gi", "RWX", "Delete", "Terminating", "table/c", "fast", "gold", "why", "59s", "Block"]),
    );
}

#[test]
fn bound_claim_shows_its_capacity() {
    check(
        ("", "PersistentVolumeClaim"),
        &json!(
            {"metadata": {"name": "pvc3", "deletionTimestamp": "2026-11-21T06:15:47Z",
            "annotations": {"volume.beta.kubernetes.io/storage-class": "old"}},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
            "volumeName": "v", "volumeMode": "Filesystem", "volumeAttributesClassName": "gold"},
            "status": {"phase": "Pending"}}
        ),
        &json!(["pvc3", "Terminating", "v", "0", "", "old", "gold", "59s", "Filesystem"]),
    );
}

#[test]
fn the_default_storage_class_says_so() {
    check(
        ("storage.k8s.io", "StorageClass"),
        &json!(
            {"metadata": {"name": "table-sc1"}, "provisioner": "p/x", "reclaimPolicy": "Delete",
            "volumeBindingMode": "Immediate"}
        ),
        &json!(["table-sc1", "p/x", "Delete", "Immediate", false, "59s"]),
    );
    check(
        ("storage.k8s.io", "StorageClass"),
        &json!(
            {"metadata": {"name": "table-sc2",
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, "provisioner": "p/x",
            "reclaimPolicy": "Retain", "allowVolumeExpansion": true, "volumeBindingMode": "WaitForFirstConsumer"}
        ),
        &json!(["table-sc2 (default)", "p/x", "Retain", "WaitForFirstConsumer", true, "59s"]),
    );
    check(
        ("storage.k8s.io", "StorageClass"),
        &json!(
            {"metadata": {"name": "table-sc3",
            "annotations": {"storageclass.beta.kubernetes.io/is-default-class": "true"}}, "provisioner": "x/y",
            "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}
        ),
        &json!(["table-sc3 (default)", "x/y", "Delete", "Immediate", false, "59s"]),
    );
    check(
        ("storage.k8s.io", "StorageClass"),
        &json!(
            {"metadata": {"name": "table-sc4",
            "annotations": {"storageclass.kubernetes.io/is-default-class": "True"}}, "provisioner": "x/y",
            "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}
        ),
        &json!(["table-sc4", "x/y", "Delete", "Immediate", false, "59s"]),
    );
}

#[test]
fn a_csi_driver_shows_what_it_can() {
    check(
        ("storage.k8s.io", "CSIDriver"),
        &json!(
            {"metadata": {"name": "table-cd1"}, "spec": {"attachRequired": true, "podInfoOnMount": false,
            "volumeLifecycleModes": ["Persistent"], "storageCapacity": false, "requiresRepublish": false}}
        ),
        &json!(["table-cd1", true, false, false, "<unset>", false, "Persistent", "59s"]),
    );
    check(
        ("storage.k8s.io", "CSIDriver"),
        &json!(
            {"metadata": {"name": "table-cd2"}, "spec": {"attachRequired": false, "podInfoOnMount": true,
            "volumeLifecycleModes": ["Persistent", "Ephemeral"], "storageCapacity": true,
            "tokenRequests": [{"audience": "a"}, {"audience": "b"}], "requiresRepublish": true}}
        ),
        &json!(["table-cd2", false, true, true, "a,b", true, "Persistent,Ephemeral", "59s"]),
    );
}

#[test]
fn a_csi_node_counts_its_drivers() {
    check(
        ("storage.k8s.io", "CSINode"),
        &json!({"metadata": {"name": "table-cn"}, "spec": {"drivers": [{"name": "d", "nodeID": "n"}]}}),
        &json!(["table-cn", 1, "59s"]),
    );
}

#[test]
fn attachment_without_a_volume_has_an_empty_cell() {
    check(
        ("storage.k8s.io", "VolumeAttachment"),
        &json!(
            {"metadata": {"name": "table-va"}, "spec": {"attacher": "a", "source": {"persistentVolumeName": "pv"},
            "nodeName": "n"}, "status": {"attached": true}}
        ),
        &json!(["table-va", "a", "pv", "n", true, "59s"]),
    );
    check(
        ("storage.k8s.io", "VolumeAttachment"),
        &json!(
            {"metadata": {"name": "table-vb"}, "spec": {"attacher": "a",
            "source": {"inlineVolumeSpec": {"accessModes": ["ReadWriteOnce"]}}, "nodeName": "n"},
            "status": {"attached": false}}
        ),
        &json!(["table-vb", "a", "", "n", false, "59s"]),
    );
}

#[test]
fn the_default_attributes_class_does_not_say_so() {
    check(
        ("storage.k8s.io", "VolumeAttributesClass"),
        &json!({"metadata": {"name": "table-vac"}, "driverName": "d", "parameters": {"a": "b"}}),
        &json!(["table-vac", "d", "59s"]),
    );
    check(
        ("storage.k8s.io", "VolumeAttributesClass"),
        &json!(
            {"metadata": {"name": "table-vac2",
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, "driverName": "d",
            "parameters": {"a": "b"}}
        ),
        &json!(["table-vac2", "d", "59s"]),
    );
    check(
        ("storage.k8s.io", "VolumeAttributesClass"),
        &json!(
            {"metadata": {"name": "table-vac3",
            "annotations": {"volumeattributesclass.alpha.kubernetes.io/is-default-class": "true"}},
            "driverName": "d", "parameters": {"a": "b"}}
        ),
        &json!(["table-vac3", "d", "59s"]),
    );
}
