// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"errors"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controllers"
)

type options struct {
	workers int
	trust   bool
	key     string
}

// define describes a controller whose options end in made.
func define(made *options) *controllers.Descriptor {
	return controllers.Define(controllers.Definition[options]{
		Name: "a-controller", Alias: "a", Account: "an-account", Summary: "does nothing",
		Rights:   []rbacv1.PolicyRule{{Verbs: []string{"list"}}},
		RightsIn: map[string][]rbacv1.PolicyRule{"kube-system": {{Verbs: []string{"get"}}}},
		Defaults: options{workers: 5},
		Flags: func(o *options) []controllers.Flag {
			return []controllers.Flag{controllers.Switch("run-a", ""), controllers.Int("a-syncs", &o.workers, "").StopsAtZero()}
		},
		Gates: func(o *options) []controllers.Gate {
			return []controllers.Gate{{Name: "Distrust", Set: func(on bool) { o.trust = !on }}}
		},
		Cluster: func(o *options, c controllers.Cluster) { o.key = string(c.ServiceAccountKey) },
		Lacks: func(o *options) string {
			if o.key == "" {
				return "a key"
			}
			return ""
		},
	}, func(_ controller.Host, o options) (*controller.Controller, error) {
		if o.workers < 0 {
			return nil, errors.New("too few")
		}
		*made = o
		return controller.New("a-controller", nil), nil
	})
}

func TestAControllerIsMadeWithWhatItsFlagsAndGatesAndTheClusterSay(t *testing.T) {
	var made options
	d := define(&made)
	if d.Lacks() != "a key" {
		t.Errorf("it lacks %q", d.Lacks())
	}
	if _, err := d.New(nil); err != nil || made != (options{workers: 5}) {
		t.Errorf("by default it is made with %+v (%v)", made, err)
	}
	*d.Flags[1].Into.(*int) = 7
	d.Gates[0].Set(false)
	d.Learn(controllers.Cluster{ServiceAccountKey: []byte("k")})
	if c, err := d.New(nil); err != nil || c.Name() != "a-controller" || made != (options{workers: 7, trust: true, key: "k"}) {
		t.Errorf("it is made with %+v (%v)", made, err)
	}
	if d.Lacks() != "" {
		t.Errorf("it lacks %q", d.Lacks())
	}
	if other := define(&made); *other.Flags[1].Into.(*int) != 5 {
		t.Error("another descriptor has the options of the first")
	}
}

func TestAFlagStopsItsController(t *testing.T) {
	d := define(&options{})
	if f := d.StoppedBy(); f != nil {
		t.Errorf("by default it is stopped by %s", f)
	}
	workers := d.Flags[1].Into.(*int)
	for n, want := range map[int]string{0: "--a-syncs=0", -1: "--a-syncs=-1"} {
		*workers = n
		if f := d.StoppedBy(); f == nil || f.String() != want || f.Switch {
			t.Errorf("it is stopped by %v, want %s", f, want)
		}
	}
	*workers, *d.Flags[0].Into.(*bool) = 1, false
	if f := d.StoppedBy(); f == nil || f.String() != "--run-a=false" || !f.Switch {
		t.Errorf("it is stopped by %v, want its switch", f)
	}
}

func TestAGateStopsTheControllerThatRequiresIt(t *testing.T) {
	d := controllers.Define(controllers.Definition[struct{}]{
		Name: "c-controller", Requires: []controllers.RequiredGate{{Name: "Old", On: true}, {Name: "New"}},
	}, func(controller.Host, struct{}) (*controller.Controller, error) {
		return controller.New("c-controller", nil), nil
	})
	set := map[string]func(bool){}
	for _, g := range d.Gates {
		set[g.Name] = g.Set
	}
	closed := func(gate string, byDefault bool) {
		t.Helper()
		if got, def := d.Closed(); got != gate || def != byDefault {
			t.Errorf("the closed gate is %q (by default: %t), want %q (%t)", got, def, gate, byDefault)
		}
	}
	closed("New", true)
	set["Old"](false)
	closed("New", false)
	set["New"](true)
	closed("Old", false)
	set["Old"](true)
	closed("", false)
}

// A nil of the controller's type in an interface would be taken for a controller.
func TestWhatCannotBeMadeIsNil(t *testing.T) {
	d := define(&options{})
	*d.Flags[1].Into.(*int) = -1
	if c, err := d.New(nil); c != nil || err == nil {
		t.Errorf("New = %v, %v", c, err)
	}
}

func TestWhatIsNotDefinedIsNothing(t *testing.T) {
	d := controllers.Define(controllers.Definition[struct{}]{Name: "b-controller"},
		func(controller.Host, struct{}) (*controller.Controller, error) {
			return controller.New("b-controller", nil), nil
		})
	d.Learn(controllers.Cluster{})
	if d.Lacks() != "" || d.StoppedBy() != nil || len(d.Rights()) != 0 || d.Account().String() != "kube-system/b-controller" {
		t.Errorf("it lacks %q, is stopped by %v, may %v, as %s", d.Lacks(), d.StoppedBy(), d.Rights(), d.Account())
	}
	if d := define(&options{}); len(d.Rights()) != 2 || d.Account().Name != "an-account" {
		t.Errorf("it may %v, as %s", d.Rights(), d.Account())
	}
}
