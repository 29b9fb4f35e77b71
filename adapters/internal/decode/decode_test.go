// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package decode_test

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/adapters/internal/decode"
)

func TestObjectsAndListsHaveTheViewOfTheirType(t *testing.T) {
	for o, want := range map[runtime.Object]decode.View{
		&corev1.Pod{}:                       decode.Typed,
		&corev1.PodList{}:                   decode.Typed,
		&unstructured.Unstructured{}:        decode.Unstructured,
		&unstructured.UnstructuredList{}:    decode.Unstructured,
		&metav1.PartialObjectMetadata{}:     decode.Metadata,
		&metav1.PartialObjectMetadataList{}: decode.Metadata,
	} {
		if got := decode.ViewOf(o); got != want {
			t.Errorf("ViewOf(%T) = %s, want %s", o, got, want)
		}
	}
}

func TestAnUnstructuredObjectIsAsTheServerWritesIt(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0"}, Spec: corev1.PodSpec{NodeName: "a"}}
	u, err := decode.ToUnstructured(pod, corev1.SchemeGroupVersion.WithKind("Pod"))
	if err != nil {
		t.Fatal(err)
	}
	if u.GetKind() != "Pod" || u.GetAPIVersion() != "v1" || u.GetName() != "web-0" {
		t.Errorf("got %v", u.Object)
	}
	var back corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &back); err != nil {
		t.Fatal(err)
	}
	back.TypeMeta = metav1.TypeMeta{}
	if !reflect.DeepEqual(&back, pod) {
		t.Errorf("the way back leads to %v", back)
	}
}

func TestATombstoneHasTheKeyOfClientGo(t *testing.T) {
	for _, o := range []*corev1.Pod{
		{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0"}},
	} {
		want, err := toolscache.MetaNamespaceKeyFunc(o)
		if err != nil {
			t.Fatal(err)
		}
		if got := decode.Tombstone(o); got.Key != want || got.Obj != o {
			t.Errorf("got %v, want the key %s", got, want)
		}
	}
}
