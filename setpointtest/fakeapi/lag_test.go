// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
	"github.com/setpoint-io/setpoint/wire"
)

// following reports when a watch sends which object.
func following(t *testing.T, c *client.Client, resource object.Resource, from string, sent chan<- string) {
	t.Helper()
	watch, err := c.Watch(t.Context(), resource, client.Selection{}, client.WatchOptions{ResourceVersion: from})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = watch.Close() })
	began := time.Now()
	go func() {
		for {
			event, err := watch.Next()
			if err != nil {
				return
			}
			var head wire.Head
			if err := watch.Encoding.ReadHead(event.Object, &head); err != nil {
				t.Error(err)
				return
			}
			sent <- fmt.Sprintf("%s %s", head.Name, time.Since(began))
		}
	}()
	synctest.Wait()
}

func TestWatchesThatLagSendTheChangesInOrderAndHoldNoOtherResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := fakeapi.New()
		maps, services := api.Serve(configMaps), api.Serve(object.Resource{Version: "v1", Plural: "services", Kind: "Service", Namespaced: true})
		c, err := client.New(api.Config())
		if err != nil {
			t.Fatal(err)
		}
		sent := make(chan string, 10)
		following(t, c, maps.Resource, api.ResourceVersion(), sent)
		following(t, c, services.Resource, api.ResourceVersion(), sent)
		lags := []time.Duration{3 * time.Second, time.Second, 5 * time.Second}
		maps.LagWatches(func() time.Duration {
			next := lags[0]
			lags = lags[1:]
			return next
		})
		add := func(r *fakeapi.Resource, o metav1.Object) {
			if err := r.Add(o); err != nil {
				t.Fatal(err)
			}
		}
		meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "ns", Name: name} }
		for _, name := range []string{"a", "b", "c"} {
			add(maps, &corev1.ConfigMap{ObjectMeta: meta(name)})
		}
		maps.LagWatches(nil)
		add(maps, &corev1.ConfigMap{ObjectMeta: meta("d")})
		add(services, &corev1.Service{ObjectMeta: meta("web")})
		if all, _, err := client.For[*corev1.ConfigMap](c).List(t.Context(), client.Selection{}); err != nil || len(all) != 4 {
			t.Errorf("the list has %d objects, %v", len(all), err)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		for _, want := range []string{"web 0s", "a 3s", "b 3s", "c 5s", "d 5s"} {
			select {
			case got := <-sent:
				if got != want {
					t.Errorf("a watch sent %s, want %s", got, want)
				}
			default:
				t.Errorf("no watch sent %s", want)
			}
		}
	})
}
