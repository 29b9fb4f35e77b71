// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// The garbage collector may not run, or may not be able to end its work for an object.
func TestWhatWaitsForTheGarbageCollectorIsDeletedAgain(t *testing.T) {
	deployments := object.Resource{Group: "apps", Version: "v1", Plural: "deployments", Kind: "Deployment", Namespaced: true}
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
		server := fakeapi.New().Serve(deployments)
		if err := server.Add(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web"}}); err != nil {
			t.Fatal(err)
		}
		c := clientOf(t, server.Server)
		err := client.ForResource[*metav1.PartialObjectMetadata](c, deployments).Delete(t.Context(), object.Key{Namespace: "team-a", Name: "web"}, client.Propagation(policy))
		if err != nil {
			t.Fatal(err)
		}
		kind := client.Served{Resource: deployments, Verbs: []string{"list", "delete", "deletecollection"}}
		left, err := newContent(c, 1).remove(t.Context(), kind, "team-a", time.Hour)
		if left.count() != 0 || err != nil {
			t.Errorf("%s: left %d with finalizers %v, error %v; want nothing", policy, left.count(), left.finalizers, err)
		}
	}
}
