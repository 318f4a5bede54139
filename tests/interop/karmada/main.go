// Asks an interpreter webhook every operation with Karmada's own client: the configuration in the file, the functions of the facade.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/resourceinterpreter/customized/webhook"
	"github.com/karmada-io/karmada/pkg/resourceinterpreter/customized/webhook/request"
	"github.com/karmada-io/karmada/pkg/util/fedinformer/genericmanager"
)

func parse(text string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	must(json.Unmarshal([]byte(text), &object.Object))
	return object
}

func must(err error) {
	if err != nil {
		fmt.Println("FAIL:", err)
		os.Exit(1)
	}
}

var failed bool

func check(name string, err error, got, want any) {
	text, _ := json.Marshal(got)
	wanted, _ := json.Marshal(want)
	switch {
	case err != nil:
		failed = true
		fmt.Printf("%s: FAIL: %v\n", name, err)
	case string(text) != string(wanted):
		failed = true
		fmt.Printf("%s: FAIL: %s, not %s\n", name, text, wanted)
	default:
		fmt.Printf("%s: accepted: %s\n", name, text)
	}
}

const workload = `{"apiVersion":"workload.example.io/v1alpha1","kind":"Workload","metadata":{"name":"web","namespace":"default","generation":1},
 "spec":{"replicas":4,"unknown":{"kept":[]},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"a","image":"a","envFrom":[{"configMapRef":{"name":"settings"}}],"resources":{}}]}}},
 "status":{"readyReplicas":4}}`

func main() {
	text, err := os.ReadFile(os.Args[1])
	must(err)
	config := &configv1alpha1.ResourceInterpreterWebhookConfiguration{}
	must(yaml.UnmarshalStrict(text, config))

	client := fake.NewSimpleDynamicClient(runtime.NewScheme())
	ctx := context.Background()
	informers := genericmanager.NewSingleClusterInformerManager(ctx, client, 0)
	services := corev1listers.NewServiceLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}))
	interpreter, err := webhook.NewCustomizedInterpreter(informers, services)
	must(err)
	interpreter.LoadConfig([]*configv1alpha1.ResourceInterpreterWebhookConfiguration{config})
	gvk := schema.GroupVersionKind{Group: "workload.example.io", Version: "v1alpha1", Kind: "Workload"}
	for _, op := range []configv1alpha1.InterpreterOperation{"InterpretReplica", "InterpretComponent", "ReviseReplica", "Retain", "AggregateStatus", "InterpretStatus", "InterpretHealth", "InterpretDependency"} {
		if !interpreter.HookEnabled(gvk, op) {
			must(fmt.Errorf("no hook for %s", op))
		}
	}
	attributes := func(op configv1alpha1.InterpreterOperation) *request.Attributes {
		return &request.Attributes{Operation: op, Object: parse(workload)}
	}

	replicas, _, _, err := interpreter.GetReplicas(ctx, attributes("InterpretReplica"))
	check("InterpretReplica", err, replicas, int32(4))
	components, _, err := interpreter.GetComponents(ctx, attributes("InterpretComponent"))
	check("InterpretComponent", err, components, []workv1alpha2.Component{{Name: "main", Replicas: 4}})

	revise := attributes("ReviseReplica")
	revise.ReplicasSet = 2
	object, _, err := interpreter.Patch(ctx, revise)
	want := parse(strings.Replace(workload, `"replicas":4`, `"replicas":2`, 1))
	check("ReviseReplica", err, object, want)
	revise = attributes("ReviseReplica")
	revise.ReplicasSet = 4
	object, _, err = interpreter.Patch(ctx, revise)
	check("ReviseReplica without a change", err, object, parse(workload))

	retain := attributes("Retain")
	retain.ObservedObj = parse(strings.Replace(workload, `"replicas":4`, `"replicas":4,"paused":true`, 1))
	object, _, err = interpreter.Patch(ctx, retain)
	check("Retain", err, object, retain.ObservedObj)

	aggregate := attributes("AggregateStatus")
	aggregate.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{
		{ClusterName: "a", Status: &runtime.RawExtension{Raw: []byte(`{"readyReplicas":1}`)}, Applied: true, Health: workv1alpha2.ResourceHealthy},
		{ClusterName: "b", AppliedMessage: "not yet"},
		{ClusterName: "c", Status: &runtime.RawExtension{Raw: []byte(`{"readyReplicas":2}`)}},
	}
	object, _, err = interpreter.Patch(ctx, aggregate)
	check("AggregateStatus", err, object, parse(strings.Replace(workload, `"readyReplicas":4`, `"readyReplicas":3`, 1)))

	status, _, err := interpreter.ReflectStatus(ctx, attributes("InterpretStatus"))
	check("InterpretStatus", err, string(status.Raw), `{"readyReplicas":4}`)
	healthy, _, err := interpreter.InterpretHealth(ctx, attributes("InterpretHealth"))
	check("InterpretHealth", err, healthy, true)
	dependencies, _, err := interpreter.GetDependencies(ctx, attributes("InterpretDependency"))
	check("InterpretDependency", err, dependencies, []configv1alpha1.DependentObjectReference{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "settings"}})

	// The other direction: what a function refuses arrives as an error with its text.
	wrong := attributes("InterpretHealth")
	wrong.Object.Object["spec"] = map[string]any{"replicas": "many"}
	_, _, err = interpreter.InterpretHealth(ctx, wrong)
	if err == nil {
		must(fmt.Errorf("an object of the wrong type was accepted"))
	}
	fmt.Println("an error arrives:", err)
	if failed {
		os.Exit(1)
	}
}
