// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
)

// A controller that would run silently and never reconcile is refused when it is added.
func TestAddRefusesAControllerThatCouldNeverRun(t *testing.T) {
	m, err := manager.New(&rest.Config{Host: "http://in-memory"})
	if err != nil {
		t.Fatal(err)
	}
	pods := cache.Informer[*corev1.Pod](m)
	nothing := func(context.Context, controller.Request) (controller.Result, error) { return controller.Result{}, nil }
	keyed := func(name string) *controller.Keyed[string] {
		return controller.NewKeyed(name, func(context.Context, controller.RequestOf[string]) (controller.Result, error) {
			return controller.Result{}, nil
		})
	}
	fed, byHand := keyed("fed"), controller.New("by-hand", nothing)
	fed.Periodically(1, "a")
	byHand.Queue().Add(object.Key{Name: "a"})
	for _, c := range []struct {
		what string
		part manager.Runnable
		want string // "" is none
	}{
		{
			"Owns without For", controller.New("web", nothing, controller.Owns(pods)),
			"adding web to the manager: it has Owns without For, which names the kind of the owners",
		},
		{
			"no source", controller.New("web", nothing, controller.Reads(pods)),
			"adding web to the manager: nothing adds keys to it: want a source, such as For, Watches or Feed, or a call of its Queue",
		},
		{
			"no source of any loop", controller.Join("web", keyed("one"), keyed("two")),
			"adding web to the manager: nothing adds keys to it: want a source, such as For, Watches or Feed, or a call of its Queue",
		},
		{
			"a joined loop with Owns alone", controller.Join("web", fed, controller.New("owned", nothing, controller.Owns(pods))),
			`adding web to the manager: its loop "owned": it has Owns without For, which names the kind of the owners`,
		},
		{"no name", controller.New("", nothing, controller.For(pods)), "adding a part to the manager: it has no name"},
		{
			"a joined loop without a name", controller.Join("web", fed, controller.New("", nothing, controller.For(pods))),
			`adding web to the manager: its loop "": it has no name`,
		},
		{"no reconciler", controller.New("web", nil, controller.For(pods)), "adding web to the manager: it has no reconciler"},
		{"no workers", controller.New("web", nothing, controller.For(pods), controller.Workers(0)), "adding web to the manager: 0 workers; want 1 or more"},
		{"Owns before For", controller.New("owns-first", nothing, controller.Owns(pods), controller.For(pods)), ""},
		{"a loop that another one feeds", controller.Join("pair", fed, keyed("second")), ""},
		{"keys that are added by hand", byHand, ""},
	} {
		err := m.Add(c.part)
		if got := text(err); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
