// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
)

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]Options{"-1 workers": {Workers: -1, Kinds: 1}, "-2 kinds": {Workers: 1, Kinds: -2}} {
		if _, err := New(mgr, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New(%+v) = %v, want an error that says %q", o, err, want)
		}
	}
}

func TestWaitsAreEstimatedByGracePeriodAndFinalizers(t *testing.T) {
	finalizers := map[string]int{"example.com/x": 1}
	for _, test := range []struct {
		name string
		left leftover
		age  time.Duration
		want time.Duration
	}{
		{"Pods that have their grace period before them", leftover{grace: 30 * time.Second}, time.Second, 30 * time.Second},
		{"Pods whose grace period should be over", leftover{grace: 30 * time.Second}, 30 * time.Second, 0},
		{"Pods with finalizers whose grace period is over", leftover{grace: 30 * time.Second, finalizers: finalizers}, time.Minute, 15 * time.Second},
		{"finalizers", leftover{finalizers: finalizers}, time.Hour, 15 * time.Second},
		{"nothing that would explain it", leftover{}, 0, 0},
	} {
		if got := estimate(test.left, test.age); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func TestOtherKindsThanPodsWaitForTheSettlingTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reconciler{
			settle: 5 * time.Second,
			discover: func(context.Context) ([]client.Served, error) {
				return []client.Served{{Resource: object.Resource{Version: "v1", Plural: "configmaps", Namespaced: true}, Verbs: []string{"delete", "list"}}}, nil
			},
			// Without content: a controller that touched some would panic.
		}
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a", UID: "1"}}
		found := r.empty(t.Context(), ns.Name, r.since(ns))
		if found.settling != 5*time.Second {
			t.Errorf("at first %s are left, want 5 s", found.settling)
		}
		time.Sleep(3 * time.Second)
		if found = r.empty(t.Context(), ns.Name, r.since(ns)); found.settling != 2*time.Second {
			t.Errorf("3 s later %s are left, want 2 s", found.settling)
		}
		// Another namespace of that name has its own time.
		anew := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a", UID: "2"}}
		if age := r.since(anew); age != 0 {
			t.Errorf("a new namespace has been terminating for %s", age)
		}
	})
}

func TestKindsThatAreNotInNamespacesOrCannotBeDeletedOrComeTwiceAreLeftOut(t *testing.T) {
	served := func(group, plural string, namespaced bool, verbs ...string) client.Served {
		return client.Served{Resource: object.Resource{Group: group, Version: "v1", Plural: plural, Namespaced: namespaced}, Verbs: verbs}
	}
	events := served("events.k8s.io", "events", true, "list", "delete")
	got := deletable([]client.Served{
		served("", "nodes", false, "list", "delete", "deletecollection"),
		served("", "bindings", true, "create"),
		served("", "events", true, "list", "delete"),
		served("example.com", "events", true, "list", "delete"),
		events,
	})
	if len(got) != 2 || got[0].Group != "" || got[1].Group != "example.com" {
		t.Errorf("%v are deleted, want the events of the core and those of example.com", got)
	}
	if got := deletable([]client.Served{events}); len(got) != 1 {
		t.Errorf("%v are deleted, want the events, which come once", got)
	}
}

func TestANamespaceOfWhichNotAllIsKnownIsNotEmpty(t *testing.T) {
	r := &reconciler{discover: func(context.Context) ([]client.Served, error) { return nil, errors.New("some group is away") }}
	found := r.empty(t.Context(), "team-a", time.Hour)
	if len(found.failures) > 0 || len(found.left) > 0 || found.settling > 0 {
		t.Errorf("found %+v, want nothing", found)
	}
	if found.nothing() || found.err() == nil {
		t.Error("a namespace of which not all is known counts as empty")
	}
}

func TestConditionsOfANamespaceThatOthersHoldAreWritten(t *testing.T) {
	for name, c := range map[string]struct {
		ns   corev1.Namespace
		want bool
	}{
		"nobody else":                 {corev1.Namespace{Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"kubernetes"}}}, true},
		"another finalizer":           {corev1.Namespace{Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"kubernetes", "example.com/x"}}}, false},
		"a finalizer of its metadata": {corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{"example.com/x"}}, Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"kubernetes"}}}, false},
	} {
		if got := goes(&c.ns); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

func TestRightsAllowNothingBesideEmptyingNamespaces(t *testing.T) {
	for _, rule := range Rights() {
		for _, verb := range rule.Verbs {
			if slices.Contains([]string{"create", "patch", "*"}, verb) || verb == "update" && !slices.Equal(rule.Resources, []string{"namespaces/status", "namespaces/finalize"}) {
				t.Errorf("%+v is more than is needed", rule)
			}
		}
	}
}
