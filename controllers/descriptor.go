// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/object"
)

// Definition describes a controller with options of type O. The functions may be nil. They get
// the options that the controller is made with, which hold Defaults at first.
type Definition[O any] struct {
	Name    string // upstream's, such as "deployment-controller"
	Alias   string // short for Name, such as "deployment"; the same as Name where there is none
	Account string // the name of its ServiceAccount; empty is Name
	Summary string // what it does, in a few words

	// ActsOn are the kinds of which this is the main controller: without it, an object of such a
	// kind stays as its user wrote it. A kind has one main controller at most; controllers that
	// only help, as ttl-after-finished-controller with Jobs, do not name it.
	ActsOn []object.Resource

	// OffByDefault says that "*" does not choose it: it has to be named.
	OffByDefault bool

	// Rights are what it must be allowed to do everywhere and nothing more, RightsIn what in
	// single namespaces, by their names.
	Rights   []rbacv1.PolicyRule
	RightsIn map[string][]rbacv1.PolicyRule

	// Defaults are the options of a controller without flags.
	Defaults O

	// Requires are the feature gates without which the controller is not started.
	Requires []RequiredGate

	// Flags are the flags that set options, and Gates the feature gates that change them.
	Flags func(*O) []Flag
	Gates func(*O) []Gate

	// Cluster takes what the controller needs from the facts about the cluster that the
	// process has. Lacks names what is missing without which the controller has no work, such
	// as "a private key for service accounts"; "" is nothing.
	Cluster func(*O, Cluster)
	Lacks   func(*O) string
}

// Gate is a feature gate that a controller obeys. Set receives whether it is on.
type Gate struct {
	Name string
	Set  func(on bool)
}

// RequiredGate is a feature gate that turns a whole controller on and off. On is its value where
// nothing sets it.
type RequiredGate struct {
	Name string
	On   bool
}

// Cluster has the facts about a cluster that controllers need and that no API server
// serves.
type Cluster struct {
	// ServiceAccountKey is the private key, in PEM, that signs the tokens of service
	// accounts. It is a secret.
	ServiceAccountKey []byte

	// RootCA are the certificates, in PEM, by which Pods know the API server.
	RootCA []byte

	// Signing are the files of the authorities that sign certificates, by signer.
	Signing map[string]KeyFiles

	// OneServer is set if the cluster has one API server: then no controller has to wait
	// until all API servers have seen that a namespace terminates.
	OneServer bool
}

// KeyFiles are files, in PEM, of a certificate and of its private key.
type KeyFiles struct{ Cert, Key string }

// Rules are rights by the namespace in which they hold; "" is everywhere.
type Rules map[string][]rbacv1.PolicyRule

// Descriptor describes a built-in controller, and holds the options that it will be made
// with. It is not safe for concurrent use.
type Descriptor struct {
	Name, Alias, Summary string
	ActsOn               []object.Resource // which the caller must not change
	OffByDefault         bool

	// Flags and Gates change Options, which points to the Options of the controller's package.
	Flags   []Flag
	Gates   []Gate
	Options any

	account  string
	requires []string        // the gates without which it is not started
	closed   map[string]bool // those that are off, true if that is their default
	rights   Rules
	learn    func(Cluster)
	lacks    func() string
	build    func(controller.Host) (controller.Runnable, error)
}

// Define returns the descriptor of a controller that create makes. It has options of its own:
// two calls with one definition share none.
func Define[O any, C controller.Runnable](d Definition[O], create func(controller.Host, O) (C, error)) *Descriptor {
	o := &d.Defaults
	made := &Descriptor{
		Name: d.Name, Alias: d.Alias, Summary: d.Summary, ActsOn: d.ActsOn, OffByDefault: d.OffByDefault, Options: o,
		account: cmp.Or(d.Account, d.Name),
		closed:  map[string]bool{},
		rights:  Rules{},
		learn:   func(Cluster) {},
		lacks:   func() string { return "" },
		build: func(h controller.Host) (controller.Runnable, error) {
			c, err := create(h, *o)
			if err != nil {
				return nil, err // and not a C that is nil
			}
			return c, nil
		},
	}
	maps.Copy(made.rights, d.RightsIn)
	if d.Rights != nil {
		made.rights[""] = d.Rights
	}
	if d.Flags != nil {
		made.Flags = d.Flags(o)
	}
	if d.Gates != nil {
		made.Gates = d.Gates(o)
	}
	for _, g := range d.Requires {
		made.require(g)
	}
	if d.Cluster != nil {
		made.learn = func(c Cluster) { d.Cluster(o, c) }
	}
	if d.Lacks != nil {
		made.lacks = func() string { return d.Lacks(o) }
	}
	return made
}

// require adds a gate that turns the controller on and off.
func (d *Descriptor) require(g RequiredGate) {
	set := func(on bool) {
		if delete(d.closed, g.Name); !on {
			d.closed[g.Name] = !g.On
		}
	}
	set(g.On)
	d.requires = append(d.requires, g.Name)
	slices.Sort(d.requires)
	d.Gates = append(d.Gates, Gate{Name: g.Name, Set: set})
}

// Requires returns the feature gates without which the controller is not started, sorted.
func (d *Descriptor) Requires() []string { return slices.Clone(d.requires) }

// Closed returns a feature gate that is off and without which the controller is not started, ""
// if there is none. byDefault says that each such gate is off where nothing sets it.
func (d *Descriptor) Closed() (gate string, byDefault bool) {
	byDefault = true
	for _, name := range slices.Sorted(maps.Keys(d.closed)) {
		gate, byDefault = cmp.Or(gate, name), byDefault && d.closed[name]
	}
	return gate, gate != "" && byDefault
}

// Account is the ServiceAccount that the controller runs as where each has its own: the one
// of kube-controller-manager with --use-service-account-credentials.
// Source of the names: k8s.io/kubernetes/cmd/kube-controller-manager/app, NewClient and
// NewClientConfig. They are in rules and audit logs of many a cluster.
func (d *Descriptor) Account() object.Key {
	return object.Key{Namespace: metav1.NamespaceSystem, Name: d.account}
}

// Rights are what the controller must be allowed to do. The caller owns the map, not the
// rules.
func (d *Descriptor) Rights() Rules { return maps.Clone(d.rights) }

// StoppedBy returns the flag whose value keeps the controller from running, or nil.
func (d *Descriptor) StoppedBy() *Flag {
	for i := range d.Flags {
		if d.Flags[i].stops() {
			return &d.Flags[i]
		}
	}
	return nil
}

// Learn takes over what the process knows of its cluster.
func (d *Descriptor) Learn(c Cluster) { d.learn(c) }

// Lacks names what is missing without which the controller has no work, "" if nothing is.
// A manager leaves such a controller out and runs the others.
func (d *Descriptor) Lacks() string { return d.lacks() }

// New makes the controller with its options. Its informers, its client and its events are
// those of h. It does not start it.
func (d *Descriptor) New(h controller.Host) (controller.Runnable, error) { return d.build(h) }
