// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/adapters/clientgo"
	"github.com/setpoint-io/setpoint/object"
)

// A transform that changes what identifies an object is a failure of the transform, also when the object was good before.
func TestTheLastGoodStateStaysWhenATransformChanges(t *testing.T) {
	for change, wrong := range map[string]func(p *corev1.Pod) (any, error){
		"the name":            func(p *corev1.Pod) (any, error) { p.Name = "z"; return p, nil },
		"the namespace":       func(p *corev1.Pod) (any, error) { p.Namespace = "team-z"; return p, nil },
		"the UID":             func(p *corev1.Pod) (any, error) { p.UID = "z"; return p, nil },
		"the resourceVersion": func(p *corev1.Pod) (any, error) { p.ResourceVersion = "1000000"; return p, nil },
		"the type":            func(*corev1.Pod) (any, error) { return &corev1.Node{}, nil },
		"into nothing":        func(*corev1.Pod) (any, error) { return nil, nil },
		"and fails":           func(*corev1.Pod) (any, error) { return nil, errors.New("no such thing") },
	} {
		t.Run(change, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.put(t, pod("a", on("n1")), pod("never", labeled("wrong", "from the beginning")))
				informer := w.podInformer(t, clientgo.Options{Indexers: podIndexers})
				if err := informer.SetTransform(func(o any) (any, error) {
					if p := o.(*corev1.Pod); p.Labels["wrong"] != "" {
						return wrong(p)
					}
					return o, nil
				}); err != nil {
					t.Fatal(err)
				}
				var got notes
				add(t, informer, &got)
				defer run(t, informer)()
				check := func(when, calls, keys, node string, faulty int) {
					t.Helper()
					want(t, when+", the handler got", got.was(), calls)
					want(t, when+", the store has", sorted(informer.GetStore().ListKeys()), keys)
					o, exists, err := informer.GetStore().GetByKey("team-a/a")
					if node != "" && (err != nil || !exists || o.(*corev1.Pod).Spec.NodeName != node) {
						t.Errorf("%s, the Pod is %v %t %v, want it on %s", when, o, exists, err, node)
					}
					if indexed, err := informer.GetIndexer().IndexKeys("node", node); node != "" && (err != nil || sorted(indexed) != "team-a/a") {
						t.Errorf("%s, the index has %v %v", when, indexed, err)
					}
					if status, ok := informer.Status(); !ok || status.Faulty != faulty {
						t.Errorf("%s, %d objects are faulty, want %d", when, status.Faulty, faulty)
					}
				}
				check("first", "initial a", "team-a/a", "n1", 1)
				w.put(t, pod("a", on("n2"), labeled("wrong", "yes")))
				check("after a change", "", "team-a/a", "n1", 2)
				w.put(t, pod("b", on("n4")))
				check("another object is not held up", "add b", "team-a/a team-a/b", "n1", 2)
				w.put(t, pod("a", on("n3")))
				check("when the transform is right again", "update a n1→n3", "team-a/a team-a/b", "n3", 1)
				w.put(t, pod("a", on("n4"), labeled("wrong", "yes")))
				w.pods.Remove(object.Key{Namespace: "team-a", Name: "a"})
				w.put(t)
				check("deleted in a state that could not be transformed", "tombstone team-a/a", "team-a/b", "", 1)
			})
		})
	}
}
