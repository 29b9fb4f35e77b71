// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifecycle

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// That a cluster of a thousand nodes goes down, or comes back, is no work for those
// whose taints stay what they are.
func TestWhenTheClusterGoesDownOrComesBackOnlyNodesWithSomethingToChangeAreAttendedTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.New()
		nodes := server.Serve(object.Resource{Version: "v1", Plural: "nodes", Kind: "Node"})
		server.Serve(object.Resource{Group: "coordination.k8s.io", Version: "v1", Plural: "leases", Kind: "Lease", Namespaced: true})
		api, err := client.New(server.Config())
		if err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			node := nodeWith(fmt.Sprintf("node-%02d", i), corev1.ConditionFalse)
			node.UID = types.UID(node.Name)
			mode := holdNoExecute
			if i == 7 {
				mode = setNoExecute
			}
			node.Spec.Taints, _ = taintsOf(node, mode, time.Now())
			if err := nodes.Add(node); err != nil {
				t.Fatal(err)
			}
		}
		o, err := Defaults().complete()
		if err != nil {
			t.Fatal(err)
		}
		factory := cache.NewFactory(api, slog.New(slog.DiscardHandler))
		var attended []string
		r := &reconciler{
			nodes: cache.Informer[*corev1.Node](factory), leases: cache.Informer[*coordinationv1.Lease](factory, cache.InNamespace(corev1.NamespaceNodeLease)),
			monitor: newMonitor(o), seen: seen{sightings: map[string]sighting{}}, counts: newCounts(), log: slog.New(slog.DiscardHandler), attend: func(node string) { attended = append(attended, node) },
			events: events.NewRecorder(api, source, "test", slog.New(slog.DiscardHandler)),
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
		synctest.Wait()

		look := func(what string, want ...string) {
			t.Helper()
			attended = nil
			r.look(time.Now())
			if !slices.Equal(attended, want) {
				t.Errorf("%s: attended to %v, want %v", what, attended, want)
			}
		}
		look("all down", "node-07")
		look("still down")
		writer := client.For[*corev1.Node](api)
		back, err := writer.Get(t.Context(), object.Key{Name: "node-03"})
		if err != nil {
			t.Fatal(err)
		}
		setCondition(back, corev1.NodeReady, corev1.ConditionTrue)
		if _, err := writer.UpdateStatus(t.Context(), back); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		time.Sleep(o.NodeMonitorPeriod)
		look("one is back, with the taint of one that is not ready", "node-03")
	})
}
