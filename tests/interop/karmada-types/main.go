// Command interop prints the table of Go types for kctl-interpreter/src/typed/types.txt, by reflection over the types of the
// built-in kinds. go.mod has the versions with which Karmada is built.
//
//	go run . > ../../../kctl-interpreter/src/typed/types.txt
package main

import (
	"fmt"
	"log"
	"maps"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	mcsv1alpha1 "sigs.k8s.io/mcs-api/pkg/apis/v1alpha1"
)

// generations are the fields that Karmada adds to the statuses of workloads in pkg/resourceinterpreter/default/native.
type generations struct {
	Generation                 int64 `json:"generation,omitempty"`
	ResourceTemplateGeneration int64 `json:"resourceTemplateGeneration,omitempty"`
}

// WrappedDeploymentStatus is the status that Karmada reflects for a Deployment.
type WrappedDeploymentStatus struct {
	generations             `json:",inline"`
	appsv1.DeploymentStatus `json:",inline"`
}

// WrappedDaemonSetStatus is the status that Karmada reflects for a DaemonSet.
type WrappedDaemonSetStatus struct {
	generations            `json:",inline"`
	appsv1.DaemonSetStatus `json:",inline"`
}

// WrappedReplicaSetStatus is the status that Karmada reflects for a ReplicaSet.
type WrappedReplicaSetStatus struct {
	generations             `json:",inline"`
	appsv1.ReplicaSetStatus `json:",inline"`
}

// WrappedStatefulSetStatus is the status that Karmada reflects for a StatefulSet.
type WrappedStatefulSetStatus struct {
	generations              `json:",inline"`
	appsv1.StatefulSetStatus `json:",inline"`
}

var roots = []any{
	appsv1.DaemonSet{}, appsv1.Deployment{}, appsv1.ReplicaSet{}, appsv1.StatefulSet{},
	autoscalingv2.HorizontalPodAutoscaler{},
	batchv1.CronJob{}, batchv1.Job{},
	corev1.PersistentVolume{}, corev1.Pod{}, corev1.Service{},
	mcsv1alpha1.ServiceImport{},
	networkingv1.Ingress{},
	policyv1.PodDisruptionBudget{},
	WrappedDaemonSetStatus{}, WrappedDeploymentStatus{}, WrappedReplicaSetStatus{}, WrappedStatefulSetStatus{},
}

// leaves are types with their own JSON form.
var leaves = map[reflect.Type]string{
	reflect.TypeFor[intstr.IntOrString](): "intstr",
	reflect.TypeFor[metav1.FieldsV1]():    "any",
	reflect.TypeFor[metav1.Time]():        "time",
	reflect.TypeFor[resource.Quantity]():  "quantity",
}

// renamed has the types that share their name with a type of another package.
var renamed = map[reflect.Type]string{
	reflect.TypeFor[mcsv1alpha1.ServicePort](): "ServiceImportPort",
}

// table has the line of each struct, by its name, and the type to detect a name that two packages use.
type table struct {
	lines map[string]string
	types map[string]reflect.Type
}

// name returns the name of a type in the table, and adds the structs in it.
func (t *table) name(of reflect.Type) string {
	if leaf, found := leaves[of]; found {
		return leaf
	}
	switch of.Kind() {
	case reflect.Bool, reflect.Int32, reflect.Int64, reflect.String:
		return of.Kind().String()
	case reflect.Map:
		return "{}" + t.name(of.Elem())
	case reflect.Pointer:
		return "*" + t.name(of.Elem())
	case reflect.Slice:
		return "[]" + t.name(of.Elem())
	case reflect.Struct:
		return t.add(of)
	}
	log.Fatalf("%v has no form in the table", of)
	return ""
}

// add adds the line of a struct, and returns its name.
func (t *table) add(of reflect.Type) string {
	name := of.Name()
	if other, found := renamed[of]; found {
		name = other
	}
	if known, found := t.types[name]; found {
		if known != of {
			log.Fatalf("%v and %v have one name", known, of)
		}
		return name
	}
	t.types[name] = of
	t.lines[name] = name + t.fields(of)
	return name
}

// fields returns the fields of a struct and of those embedded in it.
func (t *table) fields(of reflect.Type) string {
	text := ""
	for index := range of.NumField() {
		field := of.Field(index)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			text += t.fields(field.Type)
			continue
		}
		switch {
		case strings.Contains(options, "omitzero"):
			name += "!"
		case strings.Contains(options, "omitempty"):
			name += "?"
		}
		text += fmt.Sprintf(" %s:%s", name, t.name(field.Type))
	}
	return text
}

func main() {
	all := table{lines: map[string]string{}, types: map[string]reflect.Type{}}
	for _, root := range roots {
		all.add(reflect.TypeOf(root))
	}
	info, _ := debug.ReadBuildInfo()
	versions := []string{}
	for _, module := range info.Deps {
		if module.Path == "k8s.io/api" || module.Path == "sigs.k8s.io/mcs-api" {
			versions = append(versions, module.Path+" "+module.Version)
		}
	}
	fmt.Printf("# The Go types of built-in kinds in %s, as Karmada f8fdd02df has them. Written by tests/interop/karmada-types.\n", strings.Join(versions, " and "))
	for _, name := range slices.Sorted(maps.Keys(all.lines)) {
		fmt.Println(all.lines[name])
	}
}
