// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package events_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// A function that decides without a client returns the Events of its decision, and the controller
// records them with Recorder.Record when the decision is carried out.
func ExampleList() {
	var planned events.List
	planned.Normal("ScalingReplicaSet", "Reconcile", "Scaled up replica set %s from %d to %d", "web-1", 0, 3)
	for _, e := range planned {
		fmt.Printf("%s: %s\n", e.Reason, e.Note)
	}
	// Output:
	// ScalingReplicaSet: Scaled up replica set web-1 from 0 to 3
}

// An Event about a Pod: what the controller did, for users who run kubectl describe.
func Example() {
	kind := object.Resource{Group: "events.k8s.io", Version: "v1", Plural: "events", Kind: "Event", Namespaced: true}
	server := fakeapi.New().Serve(kind)
	api, err := client.New(server.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	recorder := events.NewRecorder(api, "labeller", "host-1", slog.New(slog.DiscardHandler))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web"}}
	recorder.Normal(pod, "Labelled", "Label", "set %d labels", 2)

	ctx, stop := context.WithCancel(context.Background())
	stop()
	recorder.Run(ctx, time.Minute) // writes what waits
	fmt.Println(len(server.Calls()), "written,", recorder.Dropped(), "dropped")
	// Output:
	// 1 written, 0 dropped
}
