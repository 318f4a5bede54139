// Package v2 has the stored version.
//
// +groupName=example.com
// +versionName=v2
package v2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true
// +kubebuilder:storageversion
type Versioned struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              VersionedSpec `json:"spec"`
}

type VersionedSpec struct {
	Hosts []string `json:"hosts"`
}
