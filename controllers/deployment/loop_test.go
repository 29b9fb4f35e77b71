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
	"github.com/setpoint-io/setpoint/internal/fakeapi"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
)

// The watch of Deployments lags when an orphan appears that matches one which is gone.
func TestNothingIsAdoptedForADeploymentThatIsGoneAndNothingTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deployments := fakeapi.InMemory(kind)
		sets := fakeapi.InMemory(object.Resource{Group: "apps", Version: "v1", Plural: "replicasets", Kind: "ReplicaSet", Namespaced: true})
		pods := fakeapi.InMemory(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true})
		var asked fakeapi.Asked
		deployments.Before, sets.Before = asked.Note, asked.Note
		d := deployment(0)
		d.Spec.Paused = true // nothing is made
		if err := deployments.Add(d); err != nil {
			t.Fatal(err)
		}
		config := fakeapi.Several{deployments, sets, pods}.Config()
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
		asked.Forget()
		orphan := set(d, 2, 0)
		orphan.OwnerReferences = nil
		if err := sets.Add(orphan); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got, want := asked.All(), []string{"get /apis/apps/v1/namespaces/team-a/deployments/web"}; !slices.Equal(got, want) {
			t.Errorf("the server was asked to %q, want %q", got, want)
		}
		if w := p.Warnings(); len(w) > 0 {
			t.Errorf("warnings: %q", w)
		}
	})
}
