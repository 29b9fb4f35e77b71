// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakechaos

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
)

// Kind is what a server holds.
type Kind struct {
	Resource object.Resource
	empty    func() object.Object
	fill     func(o object.Object, r *rand.Rand) // gives an object new content
}

// Pods are served in protobuf or in JSON, as the client requests.
var Pods = Kind{
	Resource: object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true},
	empty:    func() object.Object { return &corev1.Pod{} },
	fill: func(o object.Object, r *rand.Rand) {
		pod := o.(*corev1.Pod)
		pod.Spec.Containers = []corev1.Container{{Name: "main", Image: fmt.Sprintf("image:%d", r.IntN(1000))}}
		pod.Spec.NodeName = fmt.Sprintf("node-%d", r.IntN(20))
		pod.Status.Phase = []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded}[r.IntN(3)]
	},
}

// Widgets are a custom kind, served in JSON alone and found by discovery.
var Widgets = Kind{
	Resource: object.Resource{Group: "chaos.example.com", Version: "v1", Plural: "widgets", Kind: "Widget", Namespaced: true},
	empty:    func() object.Object { return &unstructured.Unstructured{Object: map[string]any{}} },
	fill: func(o object.Object, r *rand.Rand) {
		parts := make([]any, r.IntN(4))
		for i := range parts {
			parts[i] = map[string]any{"name": fmt.Sprint(r.Uint32()), "weight": r.Float64()}
		}
		o.(*unstructured.Unstructured).Object["spec"] = map[string]any{"size": r.Int64(), "parts": parts}
	},
}

// collection is the path of all objects.
func (k *Kind) collection() string {
	if k.Resource.Group == "" {
		return "/api/v1/" + k.Resource.Plural
	}
	return "/apis/" + k.Resource.APIVersion() + "/" + k.Resource.Plural
}

// began is the creation time of all objects. Whole seconds are the same in both encodings.
var began = metav1.NewTime(time.Unix(1_700_000_000, 0).UTC())

// next returns the next state of an object. before is nil for a new one.
func (k *Kind) next(before *stored, key object.Key, r *rand.Rand) object.Object {
	var o object.Object
	if before != nil {
		o = before.object.DeepCopyObject().(object.Object)
	} else {
		o = k.empty()
		o.SetNamespace(key.Namespace)
		o.SetName(key.Name)
		o.SetUID(types.UID(fmt.Sprintf("%016x", r.Uint64())))
		o.SetCreationTimestamp(began)
	}
	o.GetObjectKind().SetGroupVersionKind(k.Resource.GroupVersionKind())
	o.SetGeneration(1) // else the server sets it
	o.SetLabels(map[string]string{"app": fmt.Sprintf("app-%d", r.IntN(10)), "tier": "chaos"})
	// Most objects are small. Some are longer than what one read of a network
	// buffer brings.
	size := r.IntN(200)
	if r.IntN(50) == 0 {
		size = r.IntN(40_000)
	}
	o.SetAnnotations(map[string]string{"payload": strings.Repeat(fmt.Sprintf("%016x", r.Uint64()), size/16+1)})
	if r.IntN(4) == 0 {
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "chaos", Operation: metav1.ManagedFieldsOperationUpdate,
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}})
	}
	k.fill(o, r)
	return o
}

// Digest returns a hash of an object that is the same for each decoder and encoding. It leaves
// out what a cache may leave out: managedFields, and the kind, which typed objects lack.
func Digest(o object.Object) (uint64, error) {
	o = o.DeepCopyObject().(object.Object)
	o.SetManagedFields(nil)
	if u, ok := o.(*unstructured.Unstructured); ok {
		delete(u.Object, "kind")
		delete(u.Object, "apiVersion")
	} else {
		o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	text, err := json.Marshal(o)
	if err != nil {
		return 0, fmt.Errorf("taking the digest of %s: %w", object.KeyOf(o), err)
	}
	h := fnv.New64a()
	_, _ = h.Write(text) // a hash takes everything
	return h.Sum64(), nil
}
