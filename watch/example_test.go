// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"context"
	"fmt"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
	"github.com/setpoint-io/setpoint/watch"
	"github.com/setpoint-io/setpoint/watch/event"
)

// A program that prints what changes, until somebody has scaled.
func Example() {
	server := fakeapi.New().Serve(object.Resource{Version: "v1", Plural: "replicationcontrollers", Kind: "ReplicationController", Namespaced: true})
	web := &corev1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	if err := server.Add(web); err != nil {
		fmt.Println(err)
		return
	}

	mgr, err := manager.New(server.Config(), manager.Log(slog.New(slog.DiscardHandler)))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	w, err := watch.New(mgr, watch.Options{
		Kinds: []string{"replicationcontrollers"}, Existing: true,
		Tell: func(ctx context.Context, events []*event.Event) error {
			for _, e := range events {
				fmt.Println(e.Verb, e.Kind, e.Key)
				for _, f := range e.Fields {
					fmt.Println(" ", f.Op, f.Path, f.To)
				}
				if e.Verb == event.Updated {
					stop()
					continue
				}
				scale, err := client.MergePatch(map[string]any{"spec": map[string]any{"replicas": 3}})
				if err != nil {
					return err
				}
				if _, err := client.For[*corev1.ReplicationController](mgr.Client()).Patch(ctx, e.Key, scale); err != nil {
					return err
				}
			}
			return nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := mgr.Add(w); err != nil {
		fmt.Println(err)
		return
	}
	if err := mgr.Run(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// existing replicationcontrollers shop/web
	// updated replicationcontrollers shop/web
	//   add spec.replicas 3
}
