// Package v1beta1 has a version that is no longer served.
//
// +groupName=example.com
// +versionName=v1beta1
package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true
// +kubebuilder:unservedversion
// +kubebuilder:deprecatedversion
type Versioned struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              VersionedSpec `json:"spec"`
}

type VersionedSpec struct {
	Host string `json:"host"`
}
