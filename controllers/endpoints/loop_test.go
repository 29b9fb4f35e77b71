// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// Somebody's finalizer holds Endpoints after their Service has gone. A real server
// answers a second delete like the first one.
func TestEndpointsThatAreBeingDeletedAreNotDeletedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.New()
		server.Serve(object.Resource{Version: "v1", Plural: "services", Kind: "Service", Namespaced: true})
		server.Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true})
		endpoints := server.Serve(endpointsResource)
		for name, meta := range map[string]metav1.ObjectMeta{
			"held": {DeletionTimestamp: new(metav1.Now()), Finalizers: []string{"example.org/held"}},
			"left": {},
		} {
			meta.Namespace, meta.Name = "ns", name
			if err := endpoints.Add(&corev1.Endpoints{ObjectMeta: meta}); err != nil {
				t.Fatal(err)
			}
		}
		managertest.Run(t, server.Config(), theController)
		synctest.Wait()
		if got, want := endpoints.Calls(), []string{"delete /api/v1/namespaces/ns/endpoints/left"}; !slices.Equal(got, want) {
			t.Errorf("the server was asked to %q, want %q", got, want)
		}
	})
}
