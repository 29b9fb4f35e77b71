// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

var widget = object.Resource{Group: "example.com", Version: "v1", Plural: "widgets", Kind: "Widget", Namespaced: true}

// cluster is a server with Pods and quotas, inside of a bubble of synctest. It has no admission:
// a test raises status.used itself, as admission does.
type cluster struct {
	t                        *testing.T
	api                      *fakeapi.Server
	quotas, pods, configMaps *fakeapi.Resource
	client                   *client.Client
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	api := fakeapi.New()
	c := &cluster{
		t: t, api: api,
		quotas:     api.Serve(kind, fakeapi.WithStatus()),
		pods:       api.Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}, fakeapi.WithStatus()),
		configMaps: api.Serve(object.Resource{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true}),
	}
	api.Serve(object.Resource{Group: "events.k8s.io", Version: "v1", Plural: "events", Kind: "Event", Namespaced: true})
	var err error
	if c.client, err = client.New(api.Config()); err != nil {
		t.Fatal(err)
	}
	return c
}

// start runs the controller. stop ends it.
func (c *cluster) start() (stop func()) {
	c.t.Helper()
	p := managertest.Run(c.t, c.api.Config(), managertest.Making(New, Defaults()))
	synctest.Wait()
	return p.Stop
}

func hard(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, pair := range pairs {
		name, amount, _ := strings.Cut(pair, "=")
		list[corev1.ResourceName(name)] = resource.MustParse(amount)
	}
	return list
}

// quota creates a quota in the namespace shop.
func (c *cluster) quota(name string, limits ...string) {
	c.t.Helper()
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.ResourceQuotaSpec{Hard: hard(limits...)}}
	if _, err := client.For[*corev1.ResourceQuota](c.client).Create(c.t.Context(), q); err != nil {
		c.t.Fatal(err)
	}
}

// pod creates a Pod that requests CPU.
func (c *cluster) pod(name, cpu string) {
	c.t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	p.Spec.Containers = []corev1.Container{{Name: "web", Resources: corev1.ResourceRequirements{Requests: hard("cpu=" + cpu)}}}
	if _, err := client.For[*corev1.Pod](c.client).Create(c.t.Context(), p); err != nil {
		c.t.Fatal(err)
	}
}

// admitted creates a Pod after status.used was raised for it, as admission does.
func (c *cluster) admitted(quota, name, cpu string) {
	c.t.Helper()
	c.raise(quota, "pods=1", "requests.cpu="+cpu)
	c.pod(name, cpu)
}

// raise adds to status.used.
func (c *cluster) raise(quota string, amounts ...string) {
	c.t.Helper()
	err := fakeapi.Change(c.quotas, key(quota), func(q *corev1.ResourceQuota) {
		for name, q2 := range hard(amounts...) {
			if sum, there := q.Status.Used[name]; there {
				sum.Add(q2)
				q.Status.Used[name] = sum
			}
		}
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) delete(names ...string) {
	c.t.Helper()
	for _, name := range names {
		if err := client.For[*corev1.Pod](c.client).Delete(c.t.Context(), key(name), client.GracePeriod(0)); err != nil {
			c.t.Fatal(err)
		}
	}
}

func key(name string) object.Key { return object.Key{Namespace: "shop", Name: name} }

// used returns status.used of a quota, and status.hard if it is another one than spec.hard.
func (c *cluster) used(name string) string {
	c.t.Helper()
	q, err := fakeapi.Read[*corev1.ResourceQuota](c.quotas, key(name))
	if err != nil {
		c.t.Fatal(err)
	}
	if !same(q.Spec.Hard, q.Status.Hard) {
		return fmt.Sprintf("%s, but status.hard is %s", text(q.Status.Used), text(q.Status.Hard))
	}
	return text(q.Status.Used)
}

func (c *cluster) want(when, quota, used string) {
	c.t.Helper()
	if got := c.used(quota); got != used {
		c.t.Fatalf("%s status.used is %q, want %q", when, got, used)
	}
}

// notes returns what the Events of a reason say.
func (c *cluster) notes(reason string) (all []string) {
	c.t.Helper()
	events, _, err := client.For[*eventsv1.Event](c.client).List(c.t.Context(), client.Selection{})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, e := range events {
		if e.Reason == reason {
			all = append(all, e.Note)
		}
	}
	return all
}

// writes returns how many times the status of a quota was written.
func (c *cluster) writes() (n int) {
	for _, q := range c.quotas.Requests() {
		if q.Verb == "update" {
			n++
		}
	}
	return n
}

// pass lets time pass, and the controller does what is due.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestAQuotaIsCountedAndFollowsItsObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.pod("before", "500m")
		c.start()
		c.quota("small", "pods=10", "requests.cpu=4", "count/configmaps=5", "configmaps=5")
		pass(soon)
		c.want("at first", "small", "configmaps=0 count/configmaps=0 pods=1 requests.cpu=500m")
		c.admitted("small", "web", "1500m")
		pass(time.Minute)
		c.want("with a Pod more", "small", "configmaps=0 count/configmaps=0 pods=2 requests.cpu=2")
		c.delete("web", "before")
		pass(pace)
		c.want("without Pods", "small", "configmaps=0 count/configmaps=0 pods=0 requests.cpu=0")
	})
}
