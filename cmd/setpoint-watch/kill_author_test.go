// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
)

// canary is in every value that must not be shown. It is as long as it must be to be a
// piece of its own in base64 too.
const canary = "canary-that-no-one-sees-"

var canaries = []string{canary, base64.StdEncoding.EncodeToString([]byte(canary))}

// counter is the annotation that each change of an object writes.
const counter = "example.com/n"

var (
	configMaps = object.Resource{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true}
	secretKind = object.Resource{Version: "v1", Plural: "secrets", Kind: "Secret", Namespaced: true}
	widgets    = object.Resource{Group: "example.com", Version: "v1", Plural: "widgets", Kind: "Widget", Namespaced: true}
)

// authors write to objects: each to its own, at a pace that is for all of them together.
type authors struct {
	client    *client.Client
	ledger    *ledger
	namespace string
	seed      uint64
	pace      chan struct{}
	stop      context.CancelFunc
	done      sync.WaitGroup

	wrote   atomic.Int64
	unknown atomic.Int64 // writes without an answer, looked up afterwards
}

const (
	writers          = 12
	objectsOfAWriter = 5
)

// writing has changes made until stopped, so many a second.
func writing(t *testing.T, c *client.Client, l *ledger, namespace string, seed uint64, perSecond int) *authors {
	ctx, cancel := context.WithCancel(t.Context())
	a := &authors{client: c, ledger: l, namespace: namespace, seed: seed, pace: make(chan struct{}, perSecond), stop: cancel}
	a.done.Go(func() { a.setPace(ctx, perSecond) })
	for n := range writers {
		kind := []object.Resource{configMaps, secretKind, configMaps, secretKind, widgets}[n%5]
		a.done.Go(func() { a.write(ctx, n, kind) })
	}
	t.Cleanup(a.end)
	return a
}

// end returns when nothing is written any more and all that was is in the ledger.
func (a *authors) end() {
	a.stop()
	a.done.Wait()
}

// setPace gives as many turns as have come due. A machine that is busy catches up.
func (a *authors) setPace(ctx context.Context, perSecond int) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	began, given := time.Now(), 0
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for due := int(time.Since(began).Seconds() * float64(perSecond)); given < due; given++ {
			select {
			case a.pace <- struct{}{}:
			default: // a second behind: the server is away
			}
		}
	}
}

// subject is an object as its writer knows it.
type subject struct {
	thing
	n     int // of its changes
	there *unstructured.Unstructured
}

func (a *authors) write(ctx context.Context, n int, kind object.Resource) {
	random := rand.New(rand.NewPCG(a.seed, uint64(n)))
	objects := client.ForResource[*unstructured.Unstructured](a.client, kind)
	mine := make([]*subject, objectsOfAWriter)
	for i := range mine {
		mine[i] = &subject{thing: thing{kind.String(), object.Key{Namespace: a.namespace, Name: fmt.Sprintf("writer-%d-%d", n, i)}}}
	}
	next := mine[0]
	for {
		select {
		case <-a.pace:
		case <-ctx.Done():
			return
		}
		verb := event.Updated
		switch {
		case next.there == nil:
			verb = event.Created
		case random.IntN(6) == 0:
			verb = event.Deleted
		}
		a.change(context.WithoutCancel(ctx), objects, kind, next, verb)
		if ctx.Err() != nil {
			return
		}
		// Half of what is deleted is made anew at once.
		if next.there != nil || random.IntN(2) == 0 {
			next = mine[random.IntN(len(mine))]
		}
	}
}

// change makes one change, or none if it was not to be.
func (a *authors) change(ctx context.Context, objects client.Typed[*unstructured.Unstructured], kind object.Resource, s *subject, verb event.Verb) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	s.n++
	var now *unstructured.Unstructured
	var err error
	switch verb { //nolint:exhaustive // what a client can do
	case event.Created:
		now, err = objects.Create(ctx, content(kind, s))
	case event.Updated:
		var patch client.Patch
		if patch, err = client.MergePatch(content(kind, s).Object); err == nil {
			now, err = objects.Patch(ctx, s.key, patch)
		}
	case event.Deleted:
		err = objects.Delete(ctx, s.key, client.IfUID(s.there.GetUID()))
	}
	if err != nil {
		a.unknown.Add(1)
		var stored bool
		if now, stored = a.lookUp(ctx, objects, s, verb); !stored {
			return
		}
	}
	m := made{verb: verb, at: time.Now()}
	if verb == event.Deleted {
		m.uid, s.there = s.there.GetUID(), nil
	} else {
		m.uid, m.version, s.there = now.GetUID(), now.GetResourceVersion(), now
	}
	a.ledger.wrote(s.thing, m)
	a.wrote.Add(1)
}

// lookUp finds out whether a write that failed has been stored: who got no answer cannot
// know.
func (a *authors) lookUp(ctx context.Context, objects client.Typed[*unstructured.Unstructured], s *subject, verb event.Verb) (*unstructured.Unstructured, bool) {
	for ctx.Err() == nil {
		now, err := objects.Get(ctx, s.key)
		switch {
		case apierrors.IsNotFound(err):
			return nil, verb == event.Deleted
		case err == nil && verb == event.Deleted:
			return nil, false
		case err == nil:
			return now, now.GetAnnotations()[counter] == fmt.Sprint(s.n)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return nil, false
}

// content is what an object is to be after a change. What is not to be seen of it is new
// each time.
func content(kind object.Resource, s *subject) *unstructured.Unstructured {
	n, hidden := fmt.Sprint(s.n), canary+fmt.Sprint(s.n)
	encoded := base64.StdEncoding.EncodeToString([]byte(hidden))
	annotations := map[string]any{counter: n}
	o := map[string]any{
		"apiVersion": kind.APIVersion(), "kind": kind.Kind,
		"metadata": map[string]any{"namespace": s.key.Namespace, "name": s.key.Name, "annotations": annotations},
	}
	switch kind {
	case secretKind:
		o["data"] = map[string]any{"n": base64.StdEncoding.EncodeToString([]byte(n)), "password": encoded}
		annotations["kubectl.kubernetes.io/last-applied-configuration"] = fmt.Sprintf(`{"data":{"password":%q},"stringData":{"password":%q}}`, encoded, hidden)
	case widgets:
		o["spec"] = map[string]any{"n": n, "token": hidden}
	default:
		o["data"] = map[string]any{"n": n, "token": hidden}
	}
	return &unstructured.Unstructured{Object: o}
}
