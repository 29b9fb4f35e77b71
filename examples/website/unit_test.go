// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// The server refuses Deployments for an hour, which passes at once.
func TestAWebsiteIsServedOnceTheServerTakesItsDeployment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := fakeapi.New(
			object.Resource{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true},
			object.Resource{Version: "v1", Plural: "services", Kind: "Service", Namespaced: true},
		)
		sites := api.Serve(object.Resource{Group: "example.com", Version: "v1", Plural: "websites", Kind: "Website", Namespaced: true}, fakeapi.WithStatus())
		deployments := api.Serve(object.Resource{Group: "apps", Version: "v1", Plural: "deployments", Kind: "Deployment", Namespaced: true})
		outside := hosts(t.TempDir())
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- run(ctx, api.Config(), outside) }()

		refusedUntil := time.Now().Add(time.Hour)
		deployments.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.HTTP.Method == http.MethodPatch && time.Now().Before(refusedUntil) {
				return fakeapi.Forbidden("patch deployments")
			}
			return nil
		})
		site := &Website{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "blog"},
			Spec:       WebsiteSpec{Host: "blog.example", Page: "hello", Replicas: 2},
		}
		if err := sites.Add(site); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Minute)
		if _, err := os.Stat(outside.file(site)); err == nil {
			t.Error("there is an entry for a Website without a Deployment")
		}
		time.Sleep(time.Hour)
		if _, err := os.Stat(outside.file(site)); err != nil {
			t.Errorf("the entry: %v", err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
