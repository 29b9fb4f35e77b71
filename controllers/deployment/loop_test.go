// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// The watch of Deployments lags when an orphan appears that matches one which is gone.
func TestNothingIsAdoptedForADeploymentThatIsGoneAndNothingTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.New()
		deployments := server.Serve(kind)
		sets := server.Serve(object.Resource{Group: "apps", Version: "v1", Plural: "replicasets", Kind: "ReplicaSet", Namespaced: true})
		server.Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true})
		d := deployment(0)
		d.Spec.Paused = true // nothing is made
		if err := deployments.Add(d); err != nil {
			t.Fatal(err)
		}
		config := server.Config()
		p := managertest.Run(t, config, managertest.Making(New, Defaults()))
		time.Sleep(time.Minute)
		synctest.Wait()

		deployments.HoldWatches(true)
		admin, err := client.New(config)
		if err != nil {
			t.Fatal(err)
		}
		if err := client.For[*appsv1.Deployment](admin).Delete(t.Context(), object.KeyOf(d)); err != nil {
			t.Fatal(err)
		}
		server.Forget()
		orphan := set(d, 2, 0)
		orphan.OwnerReferences = nil
		if err := sets.Add(orphan); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got, want := server.Calls(), []string{"get /apis/apps/v1/namespaces/team-a/deployments/web"}; !slices.Equal(got, want) {
			t.Errorf("the server was asked to %q, want %q", got, want)
		}
		if w := p.Warnings(); len(w) > 0 {
			t.Errorf("warnings: %q", w)
		}
	})
}
