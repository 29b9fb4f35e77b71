// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest"
)

// rights are those that rbac.yaml gives.
func rights(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	file, err := os.Open("rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var role rbacv1.ClusterRole
	if err := yaml.NewYAMLOrJSONDecoder(file, 4096).Decode(&role); err != nil {
		t.Fatal(err)
	}
	return role.Rules
}

// scene is a controller at work, in a namespace of its own, with no more than the
// rights of rbac.yaml.
type scene struct {
	*client.Client
	t         *testing.T
	namespace string
	hosts     hosts
}

func begin(t *testing.T) *scene {
	t.Helper()
	cluster := setpointtest.Cluster(t)
	cluster.Apply(t, "", "crd.yaml")
	c, err := client.New(cluster.Config, client.WithScheme(kinds()))
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{Client: c, t: t, namespace: cluster.Namespace(t), hosts: hosts(t.TempDir())}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	config := setpointtest.Restricted(t, cluster.Config, rights(t))
	go func() {
		ended <- run(ctx, config, s.hosts, manager.Log(slog.New(slog.NewTextHandler(t.Output(), nil))))
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *scene) key() object.Key { return object.Key{Namespace: s.namespace, Name: "blog"} }

func (s *scene) create() *Website {
	s.t.Helper()
	site, err := client.For[*Website](s.Client).Create(s.t.Context(), &Website{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "blog"},
		Spec:       WebsiteSpec{Host: "blog.example", Page: "<h1>Hello</h1>"},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return site
}

// eventually waits until an object of the Website's name is as it should be.
func eventually[T object.Object](s *scene, what string, holds func(T) bool) T {
	s.t.Helper()
	return setpointtest.Await(s.t, s.Client, s.key(), what, holds)
}

func (s *scene) entry() string {
	text, err := os.ReadFile(filepath.Join(string(s.hosts), s.namespace+"_blog"))
	if err != nil {
		return ""
	}
	return string(text)
}

func (s *scene) eventuallyReady(status metav1.ConditionStatus, reason string) *Website {
	s.t.Helper()
	return eventually(s, "Ready is "+string(status)+" because "+reason, func(w *Website) bool {
		c := meta.FindStatusCondition(w.Status.Conditions, ready)
		return c != nil && c.Status == status && c.Reason == reason && c.ObservedGeneration == w.Generation
	})
}

// eventuallyEntry waits for the entry of the host that is outside of the cluster.
func (s *scene) eventuallyEntry(what string, holds func(entry string) bool) {
	s.t.Helper()
	setpointtest.Eventually(s.t, what, func() error {
		if entry := s.entry(); !holds(entry) {
			return fmt.Errorf("the entry is %q", entry)
		}
		return nil
	})
}

func TestAWebsiteIsServedAndSaysHowItGoes(t *testing.T) {
	s := begin(t)
	site := s.create()
	page := eventually(s, "there is a page", func(*corev1.ConfigMap) bool { return true })
	if page.Data["index.html"] != site.Spec.Page {
		t.Errorf("the page is %q", page.Data)
	}
	if owner := object.ControllerOf(page.OwnerReferences); owner == nil || owner.UID != site.UID || owner.Kind != "Website" {
		t.Errorf("the page is managed by %v, want the Website", owner)
	}
	site = s.eventuallyReady(metav1.ConditionTrue, "Serving")
	service := eventually(s, "there is a Service", func(*corev1.Service) bool { return true })
	if site.Status.Address != service.Spec.ClusterIP || site.Status.Available != 2 {
		t.Errorf("the status is %+v, want 2 available at %s", site.Status, service.Spec.ClusterIP)
	}
	if want := service.Spec.ClusterIP + " blog.example\n"; s.entry() != want {
		t.Errorf("the entry is %q, want %q", s.entry(), want)
	}
}

func TestAChangedWebsiteChangesWhatItConsistsOf(t *testing.T) {
	s := begin(t)
	s.create()
	site := s.eventuallyReady(metav1.ConditionTrue, "Serving")
	site.Spec = WebsiteSpec{Host: "new.example", Page: "<h1>New</h1>", Replicas: 5}
	if _, err := client.For[*Website](s.Client).Update(t.Context(), site); err != nil {
		t.Fatal(err)
	}
	eventually(s, "the page is new", func(m *corev1.ConfigMap) bool { return m.Data["index.html"] == "<h1>New</h1>" })
	eventually(s, "there are 5 replicas", func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 5 })
	s.eventuallyEntry("the entry is new", func(entry string) bool { return strings.HasSuffix(entry, " new.example\n") })
	eventually(s, "5 replicas are available", func(w *Website) bool {
		return w.Status.Available == 5 && meta.IsStatusConditionTrue(w.Status.Conditions, ready)
	})
}

func TestWhatSomebodyChangesIsChangedBackAndWhatTheyAddStays(t *testing.T) {
	s := begin(t)
	s.create()
	s.eventuallyReady(metav1.ConditionTrue, "Serving")
	patch, err := client.MergePatch(map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{"team": "a"}},
		"data":     map[string]any{"index.html": "defaced"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.For[*corev1.ConfigMap](s.Client).Patch(t.Context(), s.key(), patch); err != nil {
		t.Fatal(err)
	}
	page := eventually(s, "the page is changed back", func(m *corev1.ConfigMap) bool { return m.Data["index.html"] == "<h1>Hello</h1>" })
	if page.Annotations["team"] != "a" {
		t.Error("the annotation of somebody else is gone")
	}
	before := eventually(s, "there is a Service", func(*corev1.Service) bool { return true })
	if err := client.For[*corev1.Service](s.Client).Delete(t.Context(), s.key()); err != nil {
		t.Fatal(err)
	}
	after := eventually(s, "there is a Service again", func(service *corev1.Service) bool { return service.UID != before.UID })
	s.eventuallyEntry("the entry leads to the new Service", func(entry string) bool {
		return entry == after.Spec.ClusterIP+" blog.example\n"
	})
}

func TestADeletedWebsiteGoesWhenItsEntryIsGone(t *testing.T) {
	s := begin(t)
	s.create()
	s.eventuallyEntry("there is an entry", func(entry string) bool { return entry != "" })
	// A directory that is not empty stands where the entry was: it cannot be removed.
	file := filepath.Join(string(s.hosts), s.namespace+"_blog")
	setpointtest.Eventually(t, "a directory is there instead", func() error {
		_ = os.Remove(file) // a run that is late may put it back before the directory is there
		return os.MkdirAll(filepath.Join(file, "x"), 0o700)
	})
	sites := client.For[*Website](s.Client)
	if err := sites.Delete(t.Context(), s.key()); err != nil {
		t.Fatal(err)
	}
	if site, err := sites.Get(t.Context(), s.key()); err != nil || site.DeletionTimestamp == nil {
		t.Fatalf("the Website with an entry: %v, %v; want that it is being deleted", site, err)
	}
	if err := os.RemoveAll(file); err != nil {
		t.Fatal(err)
	}
	setpointtest.AwaitGone[*Website](t, s.Client, s.key())
	if s.entry() != "" {
		t.Error("the entry is still there")
	}
}

func TestAWebsiteThatCannotBeServedSaysWhy(t *testing.T) {
	s := begin(t)
	// Somebody else's ConfigMap has the name.
	maps := client.For[*corev1.ConfigMap](s.Client)
	theirs, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "blog"}})
	if err != nil {
		t.Fatal(err)
	}
	s.create()
	site := s.eventuallyReady(metav1.ConditionFalse, "Failed")
	if c := meta.FindStatusCondition(site.Status.Conditions, ready); !strings.Contains(c.Message, "there is one already") {
		t.Errorf("the reason is %q", c.Message)
	}
	if now, err := maps.Get(t.Context(), s.key()); err != nil || now.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("their ConfigMap is %v (%v), want it unchanged", now, err)
	}
}

func TestThereIsAWordForEachStateOfAWebsite(t *testing.T) {
	for what, want := range map[string]struct {
		available int32
		err       error
		status    metav1.ConditionStatus
		reason    string
		message   string
	}{
		"starting": {1, nil, metav1.ConditionFalse, "Starting", "1 of 2 replicas are available"},
		"serving":  {2, nil, metav1.ConditionTrue, "Serving", "2 of 2 replicas are available"},
		"failed":   {2, io.ErrUnexpectedEOF, metav1.ConditionFalse, "Failed", "unexpected EOF"},
	} {
		t.Run(what, func(t *testing.T) {
			site := &Website{Spec: WebsiteSpec{Replicas: 2}, Status: WebsiteStatus{Available: want.available}}
			site.Generation = 7
			describe(site, want.err)
			c := site.Status.Conditions[0]
			if c.Status != want.status || c.Reason != want.reason || c.Message != want.message || c.ObservedGeneration != 7 {
				t.Errorf("the condition is %+v, want %+v", c, want)
			}
		})
	}
}
