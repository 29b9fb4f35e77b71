// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

func TestCorpusIsTheSameEachTime(t *testing.T) {
	for _, k := range kinds {
		for i := range 50 {
			first, err := k.marshal(k.make(i))
			if err != nil {
				t.Fatal(err)
			}
			again, err := k.marshal(k.make(i))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(first, again) {
				t.Errorf("%s %d: encoded twice, the bytes differ", k.name, i)
			}
		}
	}
}

func TestCorpusIsReadByTheRealDecoders(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			o := k.make(7)
			raw, err := k.marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			if k.encoding == wire.Protobuf {
				if raw, err = wire.Seal(k.resource.APIVersion(), k.resource.Kind, raw); err != nil {
					t.Fatal(err)
				}
				decoded, kind, err := scheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				if got := decoded.(object.Object); *kind != k.groupVersionKind() || got.GetUID() != o.GetUID() || len(got.GetManagedFields()) == 0 {
					t.Errorf("decoded %s with UID %s and %d managedFields, want UID %s", kind, got.GetUID(), len(got.GetManagedFields()), o.GetUID())
				}
				return
			}
			decoded, kind, err := unstructured.UnstructuredJSONScheme.Decode(raw, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := decoded.(object.Object); *kind != k.groupVersionKind() || got.GetUID() != o.GetUID() {
				t.Errorf("decoded %s with UID %s, want %s", kind, got.GetUID(), o.GetUID())
			}
		})
	}
}

// The aims were taken from Pods of 4,838 bytes, 2,428 without managedFields.
func TestPodsAreAsLargeAsThoseThatTheAimsWereTakenFrom(t *testing.T) {
	const n = 1000
	whole, bare := 0, 0
	for i := range n {
		p := pod(i)
		whole += p.Size()
		p.ManagedFields = nil
		bare += p.Size()
	}
	if got := whole / n; got < 4600 || got > 5100 {
		t.Errorf("a Pod has %d bytes on average, want about 4,838", got)
	}
	if got := bare / n; got < 2300 || got > 2550 {
		t.Errorf("a Pod without managedFields has %d bytes on average, want about 2,428", got)
	}
}

func TestPodsShareWhatRealOnesShareAndNothingElse(t *testing.T) {
	uids, keys, addresses, containers := map[string]bool{}, map[object.Key]bool{}, map[string]bool{}, map[string]bool{}
	owners := map[string]int{}
	namespaces := map[string]int{}
	const n = 5000
	for i := range n {
		p := pod(i)
		uids[string(p.UID)] = true
		keys[object.KeyOf(p)] = true
		addresses[p.Status.PodIP] = true
		owners[string(p.OwnerReferences[0].UID)]++
		namespaces[p.Namespace]++
		for _, c := range p.Status.ContainerStatuses {
			containers[c.ContainerID] = true
		}
		if got := podShape(p); got != "Running: 2 containers, 4 conditions, 2 managers" {
			t.Fatalf("Pod %d: %s", i, got)
		}
	}
	if len(uids) != n || len(keys) != n || len(addresses) != n || len(containers) != 2*n {
		t.Errorf("%d UIDs, %d names, %d addresses, %d containers of %d Pods: not all differ", len(uids), len(keys), len(addresses), len(containers), n)
	}
	if len(owners) != n/podsPerReplicaSet {
		t.Errorf("%d owners, want %d", len(owners), n/podsPerReplicaSet)
	}
	if len(namespaces) < 50 {
		t.Errorf("Pods are in %d namespaces, want about a hundred", len(namespaces))
	}
}

func podShape(p *corev1.Pod) string {
	return fmt.Sprintf("%s: %d containers, %d conditions, %d managers",
		p.Status.Phase, len(p.Spec.Containers), len(p.Status.Conditions), len(p.ManagedFields))
}

func TestKeysOfAKindAreUnique(t *testing.T) {
	for _, k := range kinds {
		seen := map[object.Key]bool{}
		for i := range 2000 {
			key := object.KeyOf(k.make(i))
			if seen[key] {
				t.Errorf("%s: two objects have the key %s", k.name, key)
			}
			seen[key] = true
		}
	}
}
