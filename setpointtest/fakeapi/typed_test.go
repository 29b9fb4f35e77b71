// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi_test

import (
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

func TestObjectsAreReadAndChangedAsTheirGoType(t *testing.T) {
	served := fakeapi.New().Serve(configMaps)
	for _, name := range []string{"b", "a"} {
		if err := served.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	key := object.Key{Namespace: "ns", Name: "a"}
	before, err := fakeapi.Read[*corev1.ConfigMap](served, key)
	if err != nil {
		t.Fatal(err)
	}
	var changes sync.WaitGroup // at the same time: none is lost
	for range 10 {
		changes.Go(func() {
			if err := fakeapi.Change(served, key, func(o *corev1.ConfigMap) {
				if o.Data == nil {
					o.Data = map[string]string{}
				}
				o.Data["count"] += "x"
			}); err != nil {
				t.Error(err)
			}
		})
	}
	changes.Wait()
	all, err := fakeapi.Objects[*corev1.ConfigMap](served)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].Name != "a" || all[0].Data["count"] != strings.Repeat("x", 10) || all[1].Name != "b" {
		t.Errorf("the objects are %v", all)
	}
	if all[0].UID != before.UID || all[0].ResourceVersion == before.ResourceVersion {
		t.Errorf("the object has UID %s and version %s, and had %s and %s", all[0].UID, all[0].ResourceVersion, before.UID, before.ResourceVersion)
	}
}

func TestAnObjectThatIsNotThereOrNotOfItsTypeIsAnError(t *testing.T) {
	served := fakeapi.New().Serve(configMaps)
	key := object.Key{Namespace: "ns", Name: "a"}
	if _, err := fakeapi.Read[*corev1.ConfigMap](served, key); !apierrors.IsNotFound(err) {
		t.Errorf("reading: %v", err)
	}
	if err := fakeapi.Change(served, key, func(*corev1.ConfigMap) { t.Error("there is nothing to change") }); !apierrors.IsNotFound(err) {
		t.Errorf("changing: %v", err)
	}
	garbled := &unstructured.Unstructured{Object: map[string]any{"data": "a text"}}
	garbled.SetNamespace(key.Namespace)
	garbled.SetName(key.Name)
	if err := served.Put(garbled); err != nil {
		t.Fatal(err)
	}
	if _, err := fakeapi.Objects[*corev1.ConfigMap](served); err == nil || !strings.Contains(err.Error(), "configmaps ns/a") {
		t.Errorf("reading what is not a ConfigMap: %v", err)
	}
}
