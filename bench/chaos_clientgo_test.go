// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	peer "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/setpoint-io/setpoint/internal/chaostest"
	"github.com/setpoint-io/setpoint/internal/fakechaos"
	"github.com/setpoint-io/setpoint/object"
)

// clientGo is a shared informer of client-go, as its factories make it, with the
// handlers that Setpoint's informer has.
type clientGo struct {
	informer peer.SharedIndexInformer
	judge    *fakechaos.Judge
	handlers []*clientGoHandler
	gate     chaostest.Gate
	late     bool
	cancel   context.CancelFunc
	stop     func()
}

type clientGoHandler struct {
	observer     *fakechaos.Observer
	registration peer.ResourceEventHandlerRegistration
}

// quietClientGo has client-go survive a handler's panic, which is not how it comes,
// and keep what it has to say to itself.
var quietClientGo = sync.OnceFunc(func() {
	utilruntime.ReallyCrash = false
	utilruntime.PanicHandlers = nil
	utilruntime.ErrorHandlers = nil //nolint:reassign // there is no other way to keep it quiet
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
})

func startClientGo(config *rest.Config, j *fakechaos.Judge, o fakechaos.Options) (*clientGo, error) {
	quietClientGo()
	config.QPS = -1
	ctx, cancel := context.WithCancel(context.Background())
	c := &clientGo{judge: j, cancel: cancel}
	var run func(<-chan struct{})
	if o.Kind.Resource.Group == "" {
		config.ContentType = runtime.ContentTypeProtobuf
		config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
		how, err := kubernetes.NewForConfig(config)
		if err != nil {
			cancel()
			return nil, err
		}
		factory := informers.NewSharedInformerFactory(how, 0)
		c.informer = factory.Core().V1().Pods().Informer()
		run, c.stop = factory.Start, factory.Shutdown
	} else {
		how, err := dynamic.NewForConfig(config)
		if err != nil {
			cancel()
			return nil, err
		}
		factory := dynamicinformer.NewDynamicSharedInformerFactory(how, 0)
		c.informer = factory.ForResource(o.Kind.Resource.GroupVersionResource()).Informer()
		run, c.stop = factory.Start, factory.Shutdown
	}
	for _, name := range []string{"quick", "slow", "panicking", "blocked", "resync", "comes and goes"} {
		if err := c.add(name, o.Seed); err != nil {
			cancel()
			return nil, err
		}
	}
	run(ctx.Done())
	return c, nil
}

// Stop stops everything and returns when the factory says that it has ended.
func (c *clientGo) Stop() error {
	c.gate.Open(true)
	c.cancel()
	c.stop()
	return nil
}

func (c *clientGo) add(name string, seed uint64) error {
	o := c.judge.Observer(name)
	dice := rand.New(rand.NewPCG(seed, uint64(len(name)))) // of the handler's goroutine alone
	after, resync := func() {}, time.Duration(0)
	switch name {
	case "slow":
		after = func() { time.Sleep(time.Duration(dice.IntN(100)) * time.Millisecond) }
	case "panicking":
		after = func() {
			if dice.IntN(20) == 0 {
				panic("as it does from time to time")
			}
		}
	case "blocked":
		after = c.gate.Pass
	case "resync":
		resync = 2 * time.Minute
	}
	r, err := c.informer.AddEventHandlerWithResyncPeriod(peer.ResourceEventHandlerFuncs{
		AddFunc: func(now any) {
			o.Added(clientGoSeen(now))
			after()
		},
		UpdateFunc: func(old, now any) {
			key, before := clientGoSeen(old)
			_, then := clientGoSeen(now)
			o.Updated(key, before, then)
			after()
		},
		DeleteFunc: func(last any) {
			if t, stale := last.(peer.DeletedFinalStateUnknown); stale {
				last = t.Obj
			}
			o.Deleted(clientGoSeen(last))
			after()
		},
	}, resync)
	if err != nil {
		return fmt.Errorf("adding handler %s: %w", name, err)
	}
	c.handlers = append(c.handlers, &clientGoHandler{o, r})
	return nil
}

func clientGoSeen(o any) (object.Key, fakechaos.Seen) {
	m := o.(object.Object)
	return object.KeyOf(m), fakechaos.Seen{UID: m.GetUID(), Version: m.GetResourceVersion()}
}

// Version implements fakechaos.Candidate.
func (c *clientGo) Version() string { return c.informer.LastSyncResourceVersion() }

// Contents implements fakechaos.Candidate.
func (c *clientGo) Contents() map[object.Key]fakechaos.Content {
	all := map[object.Key]fakechaos.Content{}
	for _, o := range c.informer.GetStore().List() {
		key, seen := clientGoSeen(o)
		all[key] = fakechaos.Content{Seen: seen, Digest: func() (uint64, error) { return fakechaos.Digest(o.(object.Object)) }}
	}
	return all
}

// Observers implements fakechaos.Candidate.
func (c *clientGo) Observers() []*fakechaos.Observer {
	all := make([]*fakechaos.Observer, len(c.handlers))
	for n, h := range c.handlers {
		all[n] = h.observer
	}
	return all
}

// Disturb implements fakechaos.Candidate.
func (c *clientGo) Disturb(r *rand.Rand) error {
	if !c.late {
		c.late = true
		return c.add("late", r.Uint64())
	}
	if r.IntN(20) > 0 {
		return nil
	}
	for n, h := range c.handlers {
		if h.observer.Name == "comes and goes" {
			if err := c.informer.RemoveEventHandler(h.registration); err != nil {
				return fmt.Errorf("removing a handler: %w", err)
			}
			c.handlers = append(c.handlers[:n], c.handlers[n+1:]...)
			return c.add("comes and goes", r.Uint64())
		}
	}
	return nil
}

// Quiet implements fakechaos.Candidate.
func (c *clientGo) Quiet(yes bool) { c.gate.Open(yes) }
