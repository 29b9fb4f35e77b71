// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package storageversiongc

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	internalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// cluster is a server with StorageVersions and Leases, inside of a bubble of synctest.
type cluster struct {
	t                *testing.T
	api              *fakeapi.Server
	versions, leases *fakeapi.Resource
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	api := fakeapi.New()
	return &cluster{
		t: t, api: api,
		versions: api.Serve(object.Resource{Group: internalv1alpha1.GroupName, Version: "v1alpha1", Plural: "storageversions", Kind: "StorageVersion"}, fakeapi.WithStatus()),
		leases:   api.Serve(object.Resource{Group: "coordination.k8s.io", Version: "v1", Plural: "leases", Kind: "Lease", Namespaced: true}),
	}
}

func (c *cluster) lease(name, label string) {
	c.t.Helper()
	if err := c.leases.Add(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, Labels: map[string]string{identityLabel: label}}}); err != nil {
		c.t.Fatal(err)
	}
}

// version adds a StorageVersion of API servers, as "server=version …".
func (c *cluster) version(name, servers string) {
	c.t.Helper()
	v := &internalv1alpha1.StorageVersion{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for each := range strings.FieldsSeq(servers) {
		id, encoding, _ := strings.Cut(each, "=")
		v.Status.StorageVersions = append(v.Status.StorageVersions, internalv1alpha1.ServerStorageVersion{APIServerID: id, EncodingVersion: encoding, DecodableVersions: []string{encoding}})
	}
	v.Status.CommonEncodingVersion = common(v.Status.StorageVersions)
	setCondition(&v.Status, nil, 0, metav1.Now())
	if err := c.versions.Add(v); err != nil {
		c.t.Fatal(err)
	}
}

// want compares the StorageVersions that are there, as "name: server=version … (common)".
func (c *cluster) want(when string, want ...string) {
	c.t.Helper()
	all, err := fakeapi.Objects[*internalv1alpha1.StorageVersion](c.versions)
	if err != nil {
		c.t.Fatal(err)
	}
	var got []string
	for _, v := range all {
		text := v.Name + ":"
		for _, s := range v.Status.StorageVersions {
			text += " " + s.APIServerID + "=" + s.EncodingVersion
		}
		equal := v.Status.Conditions[0].Status == internalv1alpha1.ConditionTrue
		if (v.Status.CommonEncodingVersion != nil) != equal {
			c.t.Errorf("%s: the condition and the common version of %s differ", when, v.Name)
		}
		if equal {
			text += " (" + *v.Status.CommonEncodingVersion + ")"
		}
		got = append(got, text)
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		c.t.Errorf("%s there are\n%s\nwant\n%s", when, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestTheNotesOfAnAPIServerGoWithItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.lease("a", ofAPIServers)
		c.lease("b", ofAPIServers)
		c.lease("other", "something-else")
		c.version("apps.deployments", "a=apps/v1 b=apps/v2")
		c.version("batch.jobs", "b=batch/v1")
		c.version("core.pods", "a=v1 never=v1 other=v1")
		p := managertest.Run(t, c.api.Config(), managertest.Making(New, Defaults()))
		pass(time.Second)
		c.want("at first", "apps.deployments: a=apps/v1 b=apps/v2", "batch.jobs: b=batch/v1 (batch/v1)", "core.pods: a=v1 (v1)")
		plain, err := client.New(c.api.Config())
		if err != nil {
			t.Fatal(err)
		}
		if err := client.For[*coordinationv1.Lease](plain).Delete(t.Context(), object.Key{Namespace: "kube-system", Name: "b"}); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		c.want("when b is gone", "apps.deployments: a=apps/v1 (apps/v1)", "core.pods: a=v1 (v1)")
		if n := len(p.Writes()); n != 3 {
			t.Errorf("%d writes, want 3", n)
		}
	})
}

func TestALeaseThatCannotBeReadIsNotGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.leases.HoldWatches(true)
		var answers atomic.Bool
		c.leases.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "get" && !answers.Load() {
				return fakeapi.Unavailable(0)
			}
			return nil
		})
		p := managertest.Run(t, c.api.Config(), managertest.Making(New, Defaults()))
		pass(time.Second)
		c.lease("a", ofAPIServers) // which the cache does not have
		c.version("core.pods", "a=v1 gone=v1")
		pass(time.Minute)
		c.want("while the server does not answer", "core.pods: a=v1 gone=v1 (v1)")
		if n := len(p.Writes()); n != 0 {
			t.Errorf("%d writes, want none", n)
		}
		answers.Store(true)
		pass(10 * time.Minute)
		c.want("when it answers", "core.pods: a=v1 (v1)")
	})
}

func TestWhatAnAPIServerNotesMeanwhileStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.lease("a", ofAPIServers)
		c.version("core.pods", "gone=v1")
		changed := false
		c.versions.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "delete" && !changed {
				changed = true
				c.versions.Remove(q.Key)
				c.version("core.pods", "gone=v1 a=v1")
			}
			return nil
		})
		managertest.Run(t, c.api.Config(), managertest.Making(New, Defaults()))
		pass(time.Minute)
		c.want("at last", "core.pods: a=v1 (v1)")
	})
}

func TestAProcessThatIsKilledAfterItsWritesMakesEachOfThemOnce(t *testing.T) {
	managertest.KilledAfterEachWrite(t, func(t *testing.T) managertest.Scene {
		c := newCluster(t)
		c.lease("a", ofAPIServers)
		c.version("apps.deployments", "a=apps/v1 gone=apps/v2")
		c.version("batch.jobs", "gone=batch/v1")
		c.version("core.pods", "a=v1 gone=v1")
		return managertest.Scene{
			Config: c.api.Config(), Make: managertest.Making(New, Defaults()), Await: func() { pass(time.Minute) },
			Check: func(t *testing.T) {
				c.t = t
				c.want("at the end", "apps.deployments: a=apps/v1 (apps/v1)", "core.pods: a=v1 (v1)")
			},
		}
	})
}
