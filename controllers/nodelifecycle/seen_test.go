// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifecycle

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// Nodes and Leases come, change, go, are replaced under their names and become such as
// nobody can read, while watches lag: what is kept from look to look is what is there.
func TestWhatIsSeenOfAllNodesIsWhatOneSeesWhoReadsThemAnew(t *testing.T) {
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			leaseResource := object.Resource{Group: "coordination.k8s.io", Version: "v1", Plural: "leases", Kind: "Lease", Namespaced: true}
			server := fakeapi.New()
			nodes, leases := server.Serve(nodeResource), server.Serve(leaseResource)
			api, err := client.New(server.Config())
			if err != nil {
				t.Fatal(err)
			}
			factory := cache.NewFactory(api, slog.New(slog.DiscardHandler))
			r := &reconciler{
				nodes: cache.Informer[*corev1.Node](factory), leases: cache.Informer[*coordinationv1.Lease](factory, cache.InNamespace(corev1.NamespaceNodeLease)),
				seen: seen{sightings: map[string]sighting{}}, log: slog.New(slog.DiscardHandler),
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- factory.Run(ctx) }()
			defer func() {
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}()

			random := rand.New(rand.NewPCG(seed, 0))
			differ, unreadable := 0, 0
			for step := range 500 {
				name := string(rune('a' + random.IntN(6)))
				switch random.IntN(9) {
				case 0, 1:
					node := nodeWith(name, corev1.ConditionTrue)
					node.UID = types.UID(name + time.Now().String())
					if nodes.Get(object.Key{Name: name}) == nil {
						err = nodes.Add(node)
					}
				case 2:
					err = client.For[*corev1.Node](api).Delete(t.Context(), object.Key{Name: name})
				case 3:
					heartbeat := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse, LastHeartbeatTime: metav1.Now()}
					err = merge(t, nodes, object.Key{Name: name}, map[string]any{"status": map[string]any{"conditions": []any{heartbeat}}})
				case 4:
					err = merge(t, nodes, object.Key{Name: name}, map[string]any{"spec": map[string]any{"taints": "of no kind"}})
				case 5, 6:
					lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: name}}
					if leases.Get(leaseOf(name)) == nil {
						err = leases.Add(lease)
						break
					}
					err = merge(t, leases, leaseOf(name), map[string]any{"spec": map[string]any{"renewTime": metav1.NowMicro()}})
				case 7:
					err = client.For[*coordinationv1.Lease](api).Delete(t.Context(), leaseOf(name))
				case 8:
					err = merge(t, leases, leaseOf(name), map[string]any{"spec": map[string]any{"renewTime": "never"}})
				}
				if err != nil && !apierrors.IsNotFound(err) {
					t.Fatal(err)
				}
				err = nil
				if random.IntN(4) == 0 {
					nodes.HoldWatches(random.IntN(2) == 0)
					leases.HoldWatches(random.IntN(2) == 0)
				}
				time.Sleep(time.Second)
				synctest.Wait()
				if random.IntN(3) > 0 {
					continue // several changes between two looks
				}
				before := maps.Clone(r.seen.sightings)
				got, want := map[string]sighting{}, map[string]sighting{}
				for s := range r.sightings() {
					got[s.name] = s
				}
				for key, item := range r.nodes.All() {
					node, err := item.Object()
					if err != nil {
						unreadable++
						continue
					}
					want[key.Name] = see(node, read(r.leases.Snapshot().Get(leaseOf(key.Name))))
				}
				if !maps.Equal(got, want) {
					t.Fatalf("seed %d, step %d: %v is seen, there is %v", seed, step, got, want)
				}
				if !maps.Equal(got, before) {
					differ++
				}
			}
			if differ < 20 || unreadable == 0 {
				t.Errorf("seed %d: %d looks saw something new, %d Nodes could not be read", seed, differ, unreadable)
			}
		})
	}
}

// merge changes an object as a merge patch does, to fields of any kind. Where there is no
// object it does nothing.
func merge(t *testing.T, in *fakeapi.Resource, key object.Key, change map[string]any) error {
	t.Helper()
	o := in.Get(key)
	if o == nil {
		return nil
	}
	text, err := json.Marshal(change)
	if err != nil {
		return err
	}
	var plain map[string]any
	if err := utiljson.Unmarshal(text, &plain); err != nil {
		return err
	}
	for section, fields := range plain {
		for name, value := range fields.(map[string]any) {
			if err := unstructured.SetNestedField(o.Object, value, section, name); err != nil {
				return err
			}
		}
	}
	return in.Put(o)
}
